terraform {
  required_providers {
    agent = {
      source = "agentjobs/agent"
    }
  }
}

provider "agent" {}

import {
  to = agent_job.quickstart
  id = "proj_123/job_456"
}
