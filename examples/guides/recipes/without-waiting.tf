terraform {
  required_providers {
    agent = {
      source  = "agentjobs/agent"
      version = "~> 0.1"
    }
  }

  backend "s3" {
    bucket       = "ci-state"
    key          = "agent/without-waiting.tfstate"
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
  prompt   = "Document what is new in ${var.ref}"
  triggers = { release = var.ref }

  wait {
    enabled = false # the run is green once the service has accepted the job
  }
}
