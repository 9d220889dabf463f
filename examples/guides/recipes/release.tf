variable "release" {
  type = string
}

resource "agent_job" "release_notes" {
  prompt   = "Write the release notes of ${var.release}"
  triggers = { release = var.release }
}
