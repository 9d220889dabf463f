# Neither state nor plan file has the prompt.
resource "agent_job" "reference" {
  prompt_wo = file("${path.module}/reference.md")
}
