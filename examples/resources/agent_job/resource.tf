resource "agent_job" "quickstart" {
  name   = "quickstart"
  prompt = "Add a quickstart for the Python SDK"
}

output "pull_request" {
  value = agent_job.quickstart.pr_link
}
