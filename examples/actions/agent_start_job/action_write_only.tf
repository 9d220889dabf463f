variable "announcement" {
  type      = string
  ephemeral = true # in no saved plan
  default   = "The beta of the Python SDK starts on Monday"
}

resource "terraform_data" "announcement" {
  input = "2026-11" # a new value starts a job

  lifecycle {
    action_trigger {
      events  = [after_create, after_update]
      actions = [action.agent_start_job.announce]
    }
  }
}

action "agent_start_job" "announce" {
  config {
    prompt_wo = "Add to the changelog: ${var.announcement}"
  }
}
