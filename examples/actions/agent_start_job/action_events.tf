variable "pages" {
  type    = set(string)
  default = ["install", "quickstart"]
}

# Adding or removing a page starts a job (Terraform 1.16 or later).
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
      on_failure = continue # only warn
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
