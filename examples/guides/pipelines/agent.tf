terraform {
  required_providers {
    agent = {
      source  = "agentjobs/agent"
      version = "~> 0.1"
    }
  }

  backend "s3" {
    bucket       = "ci-state"
    key          = "agent/terraform.tfstate" # the journal is below agent/terraform.tfstate.agent-journal/
    region       = "eu-central-1"
    use_lockfile = true
  }
}

provider "agent" {
  base_url   = "https://api.mintlify.com"
  project_id = "proj_123"
}

resource "agent_job" "reference" {
  name     = "api-reference"
  prompt   = "Bring the API reference up to date with openapi.yaml."
  triggers = { openapi = filesha256("../openapi.yaml") } # another file starts another job

  timeouts {
    create = "45m" # because a role's credentials are good for an hour
    update = "45m"
  }
}
