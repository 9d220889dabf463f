resource "agent_job" "quickstart" {
  name   = "quickstart"
  prompt = "Add a quickstart for the Python SDK"
}

output "pull_request" {
  value = provider::agent::pull_request(agent_job.quickstart.pr_link) # { host = "github.com", number = 1, repository = "example/docs" }
}
