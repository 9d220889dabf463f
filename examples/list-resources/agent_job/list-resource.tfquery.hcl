list "agent_job" "lost" {
  provider         = agent
  include_resource = true # show the status of each job
}
