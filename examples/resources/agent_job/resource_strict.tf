resource "agent_job" "reference" {
  name   = "reference"
  prompt = "Bring the API reference up to date"

  timeouts {
    create = "20m"
  }

  lifecycle {
    postcondition {
      condition     = contains(["completed", "archived"], self.status)
      error_message = "Job ${self.id} is ${self.status}."
    }
  }
}
