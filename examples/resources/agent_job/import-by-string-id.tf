import {
  to = agent_job.quickstart
  id = "proj_123/job_456"
}

resource "agent_job" "quickstart" {
  name   = "quickstart"
  prompt = "Add a quickstart for the Python SDK" # stored, not sent
}
