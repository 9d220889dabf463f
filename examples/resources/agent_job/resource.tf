resource "agent_job" "quickstart" {
  prompt = "Add a quickstart for the Python SDK"
}

output "pull_request" {
  value = agent_job.quickstart.pr_link
}
