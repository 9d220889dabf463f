variable "pages" {
  type    = set(string)
  default = ["install", "quickstart"]
}

# A new page starts a job, and so does a page that is removed (Terraform 1.16).
resource "terraform_data" "page" {
  for_each = var.pages
  input    = each.key

  lifecycle {
    action_trigger {
      events  = [after_create]
      actions = [action.agent_start_job.write]
    }
    action_trigger {
      events     = [after_destroy]
      actions    = [action.agent_start_job.unlink]
      on_failure = continue # the page is gone whatever the job does
    }
  }
}

action "agent_start_job" "write" {
  config {
    prompt = "Write the page ${caller.input}"
  }
}

action "agent_start_job" "unlink" {
  config {
    prompt = "Remove all links to the page ${caller.input}"
  }
}
