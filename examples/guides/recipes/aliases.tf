variable "handbook_key" {
  type      = string
  sensitive = true
  ephemeral = true
}

provider "agent" {
  alias      = "handbook"
  project_id = "proj_456"
  admin_key  = var.handbook_key
}

resource "agent_job" "handbook" {
  provider = agent.handbook
  name     = "handbook"
  prompt   = "Correct the spelling on all pages"
}
