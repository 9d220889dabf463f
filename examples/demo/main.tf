# What `make demo` runs. To run it yourself, set AGENT_BASE_URL, AGENT_ADMIN_KEY and AGENT_PROJECT_ID.

terraform {
  required_providers {
    agent = {
      source = "agentjobs/agent"
    }
  }
}

provider "agent" {}

variable "prompt" {
  description = "What the agent shall do. A new prompt is sent to the same job as a follow-up message."
  type        = string
  default     = "Add a quickstart for the Python SDK"
}

resource "agent_job" "quickstart" {
  prompt = var.prompt
}

output "pull_request" {
  description = "Where the result can be reviewed; null when the agent changed no files."
  value       = agent_job.quickstart.pr_link
}
