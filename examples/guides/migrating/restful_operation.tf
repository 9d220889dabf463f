terraform {
  required_providers {
    agent = {
      source = "agentjobs/agent"
    }
    restful = {
      source = "magodo/restful" # stays until the move was applied
    }
  }
}

moved {
  from = restful_operation.quickstart
  to   = agent_job.quickstart
}

resource "agent_job" "quickstart" {
  prompt = "Add a quickstart for the Python SDK" # recorded, not sent
}
