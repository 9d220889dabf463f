terraform {
  required_version = ">= 1.2"

  required_providers {
    agent = {
      source  = "agentjobs/agent"
      version = "~> 0.1"
    }
  }
}
