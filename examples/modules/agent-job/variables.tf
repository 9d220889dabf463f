variable "prompt" {
  description = "Instructions for the agent. A change is sent to the same job as a follow-up message."
  type        = string
}

variable "name" {
  description = "Recognizes the job after a broken run, even if its prompt has changed meanwhile. Unique for each project in a state; not sent."
  type        = string
  default     = null
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
