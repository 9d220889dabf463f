variable "api_version" {
  type    = string
  default = "2.4.0"
}

# A new value starts a job, and apply waits until it finishes.
resource "terraform_data" "api" {
  input = var.api_version

  lifecycle {
    action_trigger {
      events  = [after_create, after_update]
      actions = [action.agent_start_job.reference]
    }
  }
}

action "agent_start_job" "reference" {
  config {
    prompt = "Bring the API reference up to date with version ${var.api_version}"
  }
}
