variable "name" {
  description = "Name of the job, unique for each project in a state. With its triggers, it starts one job, until the resource is destroyed or replaced. Not sent."
  type        = string
}

variable "prompt" {
  description = "Instructions for the agent. A change is sent to the same job as a follow-up message."
  type        = string
}

variable "project_id" {
  description = "Project that the job belongs to. Default: the provider's project_id."
  type        = string
  default     = null
}

variable "triggers" {
  description = "Any values. Changing, adding or removing them starts a new job."
  type        = map(string)
  default     = null
}

variable "files" {
  description = "Files, relative to the root module. A change of one starts a new job, as a change of the list does. Not sent."
  type        = set(string)
  default     = null

  validation {
    condition     = try(length(var.files) > 0, true)
    error_message = "There are no such files."
  }
}

variable "timeout" {
  description = "Longest time to wait until the job finishes."
  type        = string
  default     = "60m"
}

variable "strict" {
  description = "Fail the run unless the job is completed or archived. With false, a failed job, or one that a create no longer waits for, only warns: check the output status."
  type        = bool
  default     = true
}
