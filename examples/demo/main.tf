terraform {
  required_providers {
    agent = {
      source  = "agentjobs/agent"
      version = "~> 0.1"
    }
  }
}

# Reads AGENT_BASE_URL, AGENT_ADMIN_KEY and AGENT_PROJECT_ID.
provider "agent" {
  max_new_jobs = 5 # in one run
}

variable "release" {
  type = string
}

resource "agent_job" "docs" {
  name     = "release-docs"
  prompt   = "Document ${var.release}: update the guides it affects, and write release notes from CHANGELOG.md."
  triggers = { release = var.release } # another release starts another job
}

# Runs only after the job has finished with a pull request.
resource "terraform_data" "ship" {
  triggers_replace = var.release

  lifecycle {
    precondition {
      condition     = agent_job.docs.pr_link != null
      error_message = "The documentation of ${var.release} has no pull request."
    }
  }

  provisioner "local-exec" {
    command     = "sh ship.sh"
    environment = { RELEASE = var.release }
  }
}

output "pull_request" {
  value = agent_job.docs.pr_link
}
