terraform {
  required_providers {
    agent = {
      source  = "agentjobs/agent"
      version = "~> 0.1"
    }
    restapi = {
      source = "Mastercard/restapi" # keep until the move is applied
    }
  }
}

moved {
  from = restapi_object.quickstart
  to   = agent_job.quickstart
}

resource "agent_job" "quickstart" {
  prompt = "Add a quickstart for the Python SDK" # recorded, not sent
}
