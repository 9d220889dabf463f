resource "agent_job" "this" {
  name       = var.name
  prompt     = var.prompt
  project_id = var.project_id
  triggers   = var.triggers

  wait {
    on_failure = var.strict ? "error" : "warn"
  }

  timeouts {
    create = var.timeout
    update = var.timeout
  }

  lifecycle {
    postcondition {
      condition     = !var.strict || contains(["completed", "archived"], self.status)
      error_message = "Job ${self.id} is ${self.status}."
    }
  }
}
