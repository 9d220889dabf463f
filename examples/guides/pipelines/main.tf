terraform {
  required_providers {
    agent = {
      source  = "agentjobs/agent"
      version = "~> 0.1"
    }
  }
}

# AGENT_BASE_URL, AGENT_ADMIN_KEY and AGENT_PROJECT_ID set it. A key in this block could be sent to any base_url.
provider "agent" {}

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
