output "id" {
  description = "Id of the job."
  value       = agent_job.this.id
}

output "status" {
  description = "Status of the job as it was last seen."
  value       = agent_job.this.status
}

output "pr_link" {
  description = "URL of the pull request; null when the agent changed no files."
  value       = agent_job.this.pr_link
}
