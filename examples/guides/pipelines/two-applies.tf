variable "wait" {
  description = "Whether to wait until the job finishes. The first apply does not."
  type        = bool
  default     = true
}

resource "agent_job" "reference" {
  name   = "reference"
  prompt = "Bring the API reference up to date"

  wait {
    enabled = var.wait
  }

  timeouts {
    create = "20m"
    update = "20m"
  }
}
