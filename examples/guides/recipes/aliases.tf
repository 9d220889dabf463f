terraform {
  required_providers {
    agent = {
      source  = "agentjobs/agent"
      version = "~> 0.1"
    }
  }
}

variable "handbook_key" {
  type      = string
  sensitive = true
}

provider "agent" {
  project_id = "proj_123"
}

provider "agent" {
  alias      = "handbook"
  project_id = "proj_456"
  admin_key  = var.handbook_key
}

resource "agent_job" "api" {
  prompt = "Correct the spelling on all pages"
}

resource "agent_job" "handbook" {
  provider = agent.handbook
  prompt   = "Correct the spelling on all pages"
}
