terraform {
  required_providers {
    agent = {
      source  = "agentjobs/agent"
      version = "~> 0.1"
    }
  }
}

variable "agent_base_url" {
  type = string
}

variable "agent_admin_key" {
  type      = string
  sensitive = true
  ephemeral = true # not stored in plans (Terraform 1.10, OpenTofu 1.11 or later)
}

provider "agent" {
  base_url   = var.agent_base_url
  admin_key  = var.agent_admin_key
  project_id = "proj_123"
}
