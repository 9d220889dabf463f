terraform {
  required_providers {
    agent = {
      source = "agentjobs/agent"
    }
  }
}

variable "agent_admin_key" {
  description = "Admin API key of the agent service."
  type        = string
  sensitive   = true
  ephemeral   = true # in no saved plan: each command needs it again
}

provider "agent" {
  admin_key = var.agent_admin_key # AGENT_BASE_URL and AGENT_PROJECT_ID are set by the pipeline
}

variable "wait" {
  description = "Whether to wait for the end of the job. The first of the pipeline's two applies does not."
  type        = bool
  default     = true
}

resource "agent_job" "reference" {
  prompt   = "Bring the API reference up to date"
  wait     = { enabled = var.wait }
  timeouts = { create = "20m", update = "20m" }

  lifecycle {
    postcondition {
      condition     = !var.wait || contains(["completed", "archived"], self.status)
      error_message = "Job ${self.id} is ${self.status}."
    }
  }
}

output "pull_request" {
  value = agent_job.reference.pr_link
}
