# The prompt is in neither the state nor the plan file.
resource "agent_job" "reference" {
  name      = "reference"
  prompt_wo = file("${path.module}/reference.md")
}
