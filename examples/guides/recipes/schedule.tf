variable "run" {
  type = string
}

resource "agent_job" "spelling" {
  prompt   = "Correct the spelling on all pages"
  triggers = { run = var.run } # a new value starts a new job
}
