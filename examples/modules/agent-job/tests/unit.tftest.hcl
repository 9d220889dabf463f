# Needs no service and no key: the provider is mocked.

mock_provider "agent" {
  mock_resource "agent_job" {
    defaults = {
      id      = "job_mock"
      status  = "completed"
      pr_link = "https://github.com/example/docs/pull/1"
    }
  }
}

variables {
  name   = "quickstart"
  prompt = "Add a quickstart for the Python SDK"
}

run "defaults" {
  command = plan

  assert {
    condition     = agent_job.this.prompt == var.prompt && agent_job.this.name == var.name
    error_message = "The prompt or the name is not passed on."
  }

  assert {
    condition     = agent_job.this.wait.on_failure == "error" && agent_job.this.timeouts.create == "60m" && agent_job.this.timeouts.update == "60m"
    error_message = "Failures do not fail the run by default, or another timeout."
  }

  assert {
    condition     = agent_job.this.triggers == null
    error_message = "triggers is set by default."
  }
}

run "failures_only_warn" {
  command = plan

  variables {
    on_failure = "warn"
  }

  assert {
    condition     = agent_job.this.wait.on_failure == "warn"
    error_message = "on_failure is not passed on."
  }
}

run "files" {
  command = plan

  variables {
    triggers = { release = "v1" }
    files    = ["main.tf"]
  }

  assert {
    condition     = agent_job.this.triggers == tomap({ release = "v1", files = sha256("${sha256(replace(file("main.tf"), "\r\n", "\n"))} main.tf") })
    error_message = "The files are not in triggers, or replace them."
  }
}

run "no_files" {
  command = plan

  variables {
    files = []
  }

  expect_failures = [var.files]
}

run "completed" {
  assert {
    condition     = output.id == "job_mock" && output.status == "completed" && output.pr_link == "https://github.com/example/docs/pull/1"
    error_message = "The outputs do not show the job."
  }
}
