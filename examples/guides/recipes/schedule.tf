variable "run" {
  type = string
}

resource "agent_job" "reference" {
  name     = "reference"
  prompt   = "Correct the spelling in the API reference"
  triggers = { run = var.run } # a new value starts a new job
}
