terraform {
  required_version = ">= 1.8" # OpenTofu: 1.10

  required_providers {
    agent = {
      source  = "agentjobs/agent"
      version = "~> 0.1"
    }
  }
}
