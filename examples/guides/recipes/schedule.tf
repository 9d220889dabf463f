terraform {
  required_providers {
    agent = {
      source  = "agentjobs/agent"
      version = "~> 0.1"
    }
  }

  backend "s3" {
    bucket       = "ci-state"
    key          = "agent/schedule.tfstate"
    region       = "eu-central-1"
    use_lockfile = true
  }
}

provider "agent" {
  base_url   = "https://api.mintlify.com"
  project_id = "proj_123"
}

variable "run" {
  type = string
}

resource "agent_job" "spelling" {
  name     = "spelling"
  prompt   = "Correct the spelling in the API reference"
  triggers = { run = var.run } # another run is another job, and a run that is started again is not
}
