terraform import agent_job.quickstart proj_123/job_456
