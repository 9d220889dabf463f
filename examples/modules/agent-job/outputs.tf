output "id" {
  description = "Id of the job."
  value       = agent_job.this.id
}

output "status" {
  description = "Status of the job when it was last read."
  value       = agent_job.this.status
}

output "pr_link" {
  description = "URL of the pull request; null when there is none."
  value       = agent_job.this.pr_link
}
