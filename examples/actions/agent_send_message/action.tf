action "agent_send_message" "shorter" {
  config {
    project_id = "proj_123"
    id         = "job_456"
    prompt     = "Make the introduction shorter"
  }
}
