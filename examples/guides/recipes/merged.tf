variable "commit" {
  type = string
}

resource "agent_job" "reference" {
  name = "reference"

  prompt_wo = <<-EOT
    Update the documentation for the change below. Edit files in docs/ only, and ask nothing.
    If nothing in docs/ has to change, open no pull request.

    ${file("${path.module}/change.diff")}
  EOT

  triggers = { commit = var.commit }
}
