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
  type    = string
  default = "Add a quickstart for the Python SDK"
}

resource "agent_job" "quickstart" {
  prompt = var.prompt
}

output "pull_request" {
  value = agent_job.quickstart.pr_link
}
