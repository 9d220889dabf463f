terraform {
  required_providers {
    agent = {
      source  = "agentjobs/agent"
      version = "~> 0.1"
    }
  }
}

# AGENT_BASE_URL is https://api.mintlify.com; AGENT_ADMIN_KEY and AGENT_PROJECT_ID are yours.
provider "agent" {
  max_new_jobs = 5 # in one run
}

resource "agent_job" "reference" {
  name     = "api-reference"
  prompt   = "Bring the API reference up to date with this file:\n\n${file("openapi.yaml")}"
  triggers = { spec = filesha256("openapi.yaml") } # another file starts another job
}

output "pull_request" {
  value = agent_job.reference.pr_link
}
