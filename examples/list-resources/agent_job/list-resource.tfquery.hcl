list "agent_job" "all" {
  provider = agent
  limit    = 1000 # instead of 100
}
