terraform {
  required_providers {
    agent = {
      source  = "agentjobs/agent"
      version = "~> 0.1"
    }
  }

  backend "s3" {
    bucket       = "ci-state"
    key          = "agent/changes.tfstate"
    region       = "eu-central-1"
    use_lockfile = true
  }
}

provider "agent" {
  base_url   = "https://api.mintlify.com"
  project_id = "proj_123"
}

variable "commit" {
  type = string
}

variable "ref" {
  type = string
}

# Without triggers, so there is one open pull request: another prompt is a message while it is open, and another job once it
# is merged or closed.
resource "agent_job" "changes" {
  name   = "changes"
  prompt = "Bring docs/ up to date with ${var.ref} at commit ${var.commit}. If nothing in docs/ has to change, open no pull request."
}
