# Strict: a job that has not ended fails the run. OpenTofu takes this file instead of
# not_ended.tftest.hcl.

mock_provider "agent" {
  mock_resource "agent_job" {
    defaults = {
      id     = "job_mock"
      status = "active"
    }
  }
}

variables {
  prompt = "Add a quickstart for the Python SDK"
}

run "not_ended" {
  command = plan

  expect_failures = [agent_job.this]
}
