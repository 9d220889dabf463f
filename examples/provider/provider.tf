terraform {
  required_providers {
    agent = {
      source  = "agentjobs/agent"
      version = "~> 0.1"
    }
  }
}

# Reads AGENT_BASE_URL, AGENT_ADMIN_KEY and AGENT_PROJECT_ID.
provider "agent" {
  max_new_jobs = 5
}

resource "agent_job" "quickstart" {
  name   = "quickstart"
  prompt = "Add a quickstart for the Python SDK"
}

output "pull_request" {
  value = agent_job.quickstart.pr_link
}
