list "agent_job" "lost" {
  provider = agent
  limit    = 1000 # instead of 100
}
