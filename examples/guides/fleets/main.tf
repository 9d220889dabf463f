terraform {
  required_providers {
    agent = {
      source  = "agentjobs/agent"
      version = "~> 0.1"
    }
  }
}

provider "agent" {
  poll = { max_per_second = 20 }
}

variable "projects" {
  description = "Project ids of the documentation, by repository."
  type        = map(string)
}

resource "agent_job" "spelling" {
  for_each = var.projects

  project_id = each.value
  prompt     = "Correct the spelling on all pages"

  # Keep a job that failed, with a warning.
  wait = { on_failure = "warn" }

  # Pauses for the rate limit count: one hour for each 100 prompts to a project.
  timeouts = { create = "3h", update = "3h" }
}

output "pull_requests" {
  value = { for repository, job in agent_job.spelling : repository => job.pr_link }
}

output "not_completed" {
  value = {
    for repository, job in agent_job.spelling : repository => {
      status = job.status
      job    = "${job.project_id}/${job.id}"
    } if job.status != "completed"
  }
}
