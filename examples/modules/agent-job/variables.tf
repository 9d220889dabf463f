variable "name" {
  description = "Name of the job, unique in a project of a state. Another name is another job. Not sent."
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

variable "on_failure" {
  description = "When the job fails, error fails each run until there is another job, retry fails the run and the next apply starts a new job, and warn keeps the failed job."
  type        = string
  default     = "error"
}
