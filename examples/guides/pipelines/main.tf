terraform {
  required_providers {
    agent = {
      source  = "agentjobs/agent"
      version = "~> 0.1"
    }
  }
}

variable "agent_admin_key" {
  type      = string
  sensitive = true
  ephemeral = true # not stored in plans, so apply needs it too
}

provider "agent" {
  admin_key = var.agent_admin_key # AGENT_… variables set the rest
}

resource "agent_job" "reference" {
  name   = "reference"
  prompt = "Bring the API reference up to date"

  timeouts {
    create = "20m"
    update = "20m"
  }
}

output "pull_request" {
  value = agent_job.reference.pr_link
}

output "message" {
  value = "Job ${agent_job.reference.status}: ${coalesce(agent_job.reference.pr_link, "no pull request")}"
}
