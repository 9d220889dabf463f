terraform {
  required_providers {
    agent = {
      source  = "agentjobs/agent"
      version = "~> 0.1"
    }
  }
}

provider "agent" {
  max_new_jobs = 40 # instead of 20: what this fleet may start and send in one run
  max_messages = 40
}

variable "projects" {
  description = "Project ids, by repository."
  type        = map(string)
}

variable "on_failure" {
  description = "warn keeps failed jobs, and retry replaces them."
  type        = string
  default     = "warn"
}

resource "agent_job" "spelling" {
  for_each = var.projects

  name       = "spelling-${each.key}"
  project_id = each.value
  prompt     = "Correct the spelling on all pages"

  wait {
    on_failure = var.on_failure
  }
}

output "pull_requests" {
  value = { for repository, job in agent_job.spelling : repository => job.pr_link if job.pr_link != null }
}

output "not_completed" {
  value = {
    for repository, job in agent_job.spelling : repository => {
      status = job.status
      job    = "${job.project_id}/${job.id}"
    } if job.status != "completed"
  }
}
