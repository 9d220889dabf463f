# The provider reads AGENT_BASE_URL and AGENT_ADMIN_KEY.
data "agent_job" "quickstart" {
  project_id = "proj_123"
  id         = "job_456"
}

output "pull_request" {
  value = data.agent_job.quickstart.pr_link
}
