resource "agent_job" "quickstart" {
  prompt = "Add a quickstart for the Python SDK"
}

locals {
  # Null when there is no pull request.
  pull_request = provider::agent::parse_pr_link(agent_job.quickstart.pr_link)
}

output "repository" {
  value = try("${local.pull_request.owner}/${local.pull_request.repository}", null)
}

output "number" {
  value = try(local.pull_request.number, null)
}
