terraform {
  required_providers {
    agent = {
      source  = "agentjobs/agent"
      version = "~> 0.1"
    }
  }
}

provider "agent" {}

variable "prompt" {
  description = "Instructions for the agent. A change is sent to the same job as a follow-up message."
  type        = string
  default     = "Add a quickstart for the Python SDK"
}

resource "agent_job" "quickstart" {
  prompt = var.prompt
}

output "pull_request" {
  description = "URL of the pull request; null when there is none."
  value       = agent_job.quickstart.pr_link
}
