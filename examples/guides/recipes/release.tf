variable "release" {
  type = string
}

variable "releases" {
  type = string
}

resource "agent_job" "reference" {
  name     = "reference"
  prompt   = "Update the API reference for ${var.releases}"
  triggers = { release = var.release, releases = var.releases }
}

# The status is unknown until the apply. A known value would be stored even if the job then fails.
output "documented" {
  value = merge(agent_job.reference.triggers, { status = agent_job.reference.status })
}
