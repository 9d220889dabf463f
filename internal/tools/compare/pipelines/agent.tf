terraform {
  required_providers {
    agent = { source = "agentjobs/agent" }
  }
}

variable "prompt" {}

provider "agent" {}

resource "agent_job" "test" {
  name   = "test"
  prompt = var.prompt
}
