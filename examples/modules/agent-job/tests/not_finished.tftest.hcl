# Strict: a job that has not finished fails the run. Terraform computes the values of a mock
# during apply. OpenTofu does so during plan, and uses not_finished.tofutest.hcl instead.

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
  expect_failures = [agent_job.this]
}
