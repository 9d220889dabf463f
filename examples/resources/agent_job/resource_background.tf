resource "agent_job" "spelling" {
  prompt = "Correct the spelling on all pages"
  wait   = { enabled = false }
}
