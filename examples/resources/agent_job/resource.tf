resource "agent_job" "quickstart" {
  name   = "quickstart"
  prompt = "Add a quickstart for the Python SDK"

  lifecycle {
    postcondition { # without it, a create that stops waiting early only warns
      condition     = contains(["completed", "archived"], self.status)
      error_message = "Job ${self.id} is ${self.status}."
    }
  }
}

output "pull_request" {
  value = agent_job.quickstart.pr_link
}
