terraform {
  required_providers {
    agent = {
      source  = "agentjobs/agent"
      version = "~> 0.1"
    }
  }
}

provider "agent" {} # reads AGENT_BASE_URL, AGENT_ADMIN_KEY and AGENT_PROJECT_ID

variable "release" {
  type = string
}

resource "agent_job" "docs" {
  name     = "release-docs"
  prompt   = "Document ${var.release}: update the guides it affects, and write release notes from CHANGELOG.md."
  triggers = { release = var.release }
}

# Publishes, and merges once approved. Running it again changes nothing.
resource "terraform_data" "release" {
  triggers_replace = [agent_job.docs.id, agent_job.docs.pr_link]

  provisioner "local-exec" {
    interpreter = ["sh", "-ec"]
    environment = { RELEASE = var.release, PR_LINK = agent_job.docs.pr_link }
    command     = <<-EOT
      gh release view "$RELEASE" || gh release create "$RELEASE" --generate-notes
      if [ -n "$PR_LINK" ]; then gh pr merge "$PR_LINK" --squash --auto; fi
    EOT
  }
}

output "pull_request" {
  value = agent_job.docs.pr_link
}
