locals {
  message = "Job ${agent_job.reference.status}: ${coalesce(agent_job.reference.pr_link, "no pull request")}"
}

output "message" {
  value = local.message
}

output "slack" {
  value = jsonencode({ text = local.message })
}
