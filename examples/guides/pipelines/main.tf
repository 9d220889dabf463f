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
  admin_key = var.agent_admin_key # the pipeline sets AGENT_BASE_URL, AGENT_PROJECT_ID and AGENT_JOURNAL_URL
}

resource "agent_job" "reference" {
  prompt   = "Bring the API reference up to date"
  timeouts = { create = "20m", update = "20m" }

  lifecycle {
    postcondition {
      condition     = contains(["completed", "archived"], self.status)
      error_message = "Job ${self.id} is ${self.status}."
    }
  }
}

output "pull_request" {
  value = agent_job.reference.pr_link
}
