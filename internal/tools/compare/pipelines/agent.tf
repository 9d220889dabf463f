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

  lifecycle {
    postcondition {
      condition     = contains(["completed", "archived"], self.status)
      error_message = "Job ${self.id} is ${self.status}."
    }
  }
}
