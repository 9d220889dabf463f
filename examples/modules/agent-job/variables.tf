variable "prompt" {
  description = "What the agent shall do. A new prompt is sent to the same job as a follow-up message."
  type        = string
}

variable "project_id" {
  description = "Project that the job belongs to. Null: the provider's default."
  type        = string
  default     = null
}

variable "triggers" {
  description = "Any values; when one of them changes, a new job is started with the prompt."
  type        = map(string)
  default     = null
}

variable "timeout" {
  description = "Longest time to wait for the end of the job."
  type        = string
  default     = "60m"
}

variable "strict" {
  description = "Whether the run fails unless the job has ended as completed or archived. If not, the outputs tell how it went."
  type        = bool
  default     = true
}
