terraform {
  required_providers {
    agent = {
      source = "agentjobs/agent"
    }
    restapi = {
      source = "Mastercard/restapi" # stays until the move was applied
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
