resource "agent_job" "changelog" {
  prompt = "Write the changelog of the newest release"
  wait   = { enabled = false } # ends once the service has taken the prompt
}

data "agent_job" "changelog" {
  project_id = agent_job.changelog.project_id
  id         = agent_job.changelog.id
  wait       = { enabled = true }
  timeouts   = { read = "30m" }

  # After a new prompt: read the job once the message was sent, not while planning.
  depends_on = [agent_job.changelog]
}

output "changelog" {
  value = data.agent_job.changelog.pr_link
}
