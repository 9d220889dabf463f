terraform {
  required_providers {
    agent = {
      source  = "agentjobs/agent"
      version = "~> 0.1"
    }
    restful = {
      source = "magodo/restful" # keep until the move is applied
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
