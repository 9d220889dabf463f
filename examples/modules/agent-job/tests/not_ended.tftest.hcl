# Strict: a job that has not ended fails the run. Terraform fills a mock in while it
# applies; OpenTofu, while it plans, and takes not_ended.tofutest.hcl instead.

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
  expect_failures = [agent_job.this]
}
