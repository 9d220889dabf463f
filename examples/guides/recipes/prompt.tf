locals {
  prompt = "Correct the spelling in the API reference"
}

resource "agent_job" "reference" {
  name     = "reference"
  prompt   = local.prompt
  triggers = { prompt = sha256(local.prompt) } # a new prompt starts a new job; without this, it is a message
}
