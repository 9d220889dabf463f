terraform {
  required_providers {
    agent = {
      source  = "agentjobs/agent"
      version = "~> 0.1"
    }
  }

  backend "s3" {
    bucket       = "ci-state"
    key          = "agent/release.tfstate"
    region       = "eu-central-1"
    use_lockfile = true
  }
}

provider "agent" {
  base_url   = "https://api.mintlify.com"
  project_id = "proj_123"
}

variable "ref" {
  type = string
}

resource "agent_job" "release" {
  name     = "release"
  prompt   = "Document what is new in ${var.ref}. If nothing in docs/ has to change, open no pull request."
  triggers = { release = var.ref } # another release is another job
}
