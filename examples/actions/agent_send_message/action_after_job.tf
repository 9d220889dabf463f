resource "agent_job" "reference" {
  name   = "reference"
  prompt = "Bring the API reference up to date"
}

# Changes after the job has finished a new prompt.
resource "terraform_data" "review" {
  input = agent_job.reference.prompt

  lifecycle {
    action_trigger {
      events  = [after_create, after_update]
      actions = [action.agent_send_message.review]
    }
  }
}

action "agent_send_message" "review" {
  config {
    job_id = agent_job.reference.id
    prompt = "Run each example of the pull request, and correct those that fail"
  }
}
