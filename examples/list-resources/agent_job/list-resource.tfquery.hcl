list "agent_job" "all" {
  provider         = agent
  include_resource = true # reads each job
  limit            = 1000 # instead of 100
}
