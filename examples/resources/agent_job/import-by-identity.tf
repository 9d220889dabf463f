import {
  to = agent_job.quickstart
  identity = {
    project_id = "proj_123"
    id         = "job_456"
  }
}
