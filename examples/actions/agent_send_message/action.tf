action "agent_send_message" "shorter" {
  config {
    project_id = "proj_123"
    job_id     = "job_456"
    prompt     = "Make the introduction shorter"
  }
}
