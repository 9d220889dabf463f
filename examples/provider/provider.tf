terraform {
  required_providers {
    agent = {
      source  = "agentjobs/agent"
      version = "~> 0.1"
    }
  }
}

# Reads AGENT_BASE_URL, AGENT_ADMIN_KEY and AGENT_PROJECT_ID.
provider "agent" {}

resource "agent_job" "quickstart" {
  prompt = "Add a quickstart for the Python SDK"
}

output "pull_request" {
  value = agent_job.quickstart.pr_link
}
