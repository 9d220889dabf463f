terraform {
  required_providers {
    agent = {
      source  = "agentjobs/agent"
      version = "~> 0.1"
    }
  }

  backend "s3" {
    bucket       = "ci-state"
    key          = "agent/projects.tfstate"
    region       = "eu-central-1"
    use_lockfile = true
  }
}

provider "agent" {
  base_url     = "https://api.mintlify.com"
  max_new_jobs = 40 # in one run, instead of 20
  max_messages = 40
}

resource "agent_job" "spelling" {
  for_each = toset(["proj_123", "proj_456"])

  project_id = each.key
  name       = "spelling"
  prompt     = file("${path.module}/prompt.md") # no variable of the environment, which holds 128 kB
}

output "pull_requests" {
  value = { for project, job in agent_job.spelling : project => job.pr_link }
}
