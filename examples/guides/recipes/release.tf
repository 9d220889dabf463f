variable "release" {
  type = string
}

resource "agent_job" "reference" {
  name     = "reference"
  prompt   = "Update the API reference for ${var.release}"
  triggers = { release = var.release }
}
