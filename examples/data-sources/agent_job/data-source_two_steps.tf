resource "agent_job" "changelog" {
  prompt = "Write the changelog of the latest release"

  wait {
    enabled = false # completes once the service has accepted the prompt
  }
}

data "agent_job" "changelog" {
  project_id = agent_job.changelog.project_id
  id         = agent_job.changelog.id

  wait {
    enabled = true
  }

  timeouts {
    read = "30m"
  }

  # Read the job after a new prompt was sent, not while planning.
  depends_on = [agent_job.changelog]
}

output "changelog" {
  value = data.agent_job.changelog.pr_link
}
