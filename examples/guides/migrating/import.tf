terraform {
  required_providers {
    agent = {
      source  = "agentjobs/agent"
      version = "~> 0.1"
    }
  }
}

provider "agent" {}

import {
  to = agent_job.quickstart
  id = "proj_123/job_456"
}
