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
  max_new_jobs = 5 # in one run
}

resource "agent_job" "quickstart" {
  name   = "quickstart"
  prompt = "Add a quickstart for the Python SDK"

  lifecycle {
    postcondition { # without it, a create that stops waiting early only warns
      condition     = contains(["completed", "archived"], self.status)
      error_message = "Job ${self.id} is ${self.status}."
    }
  }
}

output "pull_request" {
  value = agent_job.quickstart.pr_link
}
