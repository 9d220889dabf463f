# Strict: a job that has not finished fails the run. OpenTofu uses this file instead of
# not_finished.tftest.hcl.

mock_provider "agent" {
  mock_resource "agent_job" {
    defaults = {
      id     = "job_mock"
      status = "active"
    }
  }
}

variables {
  name   = "quickstart"
  prompt = "Add a quickstart for the Python SDK"
}

run "not_finished" {
  command = plan

  expect_failures = [agent_job.this]
}
