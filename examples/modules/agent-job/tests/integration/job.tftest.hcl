# Uses the real provider. Point AGENT_BASE_URL, AGENT_ADMIN_KEY and AGENT_PROJECT_ID at the
# simulator: with another service, these tests start real jobs.

provider "agent" {
  journal {
    enabled = false # a test that is killed may start again
  }
}

variables {
  name   = "quickstart"
  prompt = "Add a quickstart for the Python SDK [simulate: 1s]"
}

run "a_job_is_waited_for" {
  assert {
    condition     = output.status == "completed" && startswith(output.pr_link, "https://")
    error_message = "The job is ${output.status}, its pull request ${coalesce(output.pr_link, "null")}."
  }
}

run "a_new_prompt_is_waited_for" {
  variables {
    prompt = "Show the async client too [simulate: 1s]"
  }

  assert {
    condition     = output.status == "completed"
    error_message = "Job ${output.id} is ${output.status}."
  }
}

run "a_new_trigger_is_waited_for" {
  variables {
    triggers = { release = "2.4.0" }
  }

  assert {
    condition     = output.status == "completed"
    error_message = "Job ${output.id} is ${output.status}."
  }
}

run "a_job_that_takes_too_long_is_kept_when_not_strict" {
  variables {
    prompt   = "Show the sync client [simulate: active]"
    strict   = false
    timeout  = "5s"
    triggers = { release = "2.4.1" }
  }

  assert {
    condition     = output.status == "active"
    error_message = "Job ${output.id} is ${output.status}."
  }
}

run "a_failed_job_is_kept_when_not_strict" {
  variables {
    prompt   = "Add a quickstart for the Python SDK [simulate: 1s, failed]"
    strict   = false
    triggers = { release = "2.5.0" }
  }

  assert {
    condition     = output.status == "failed" && output.pr_link == null
    error_message = "The job is ${output.status}."
  }
}

# This one is last, because its job keeps running.
run "a_job_that_takes_too_long_is_an_error" {
  variables {
    prompt   = "Add a quickstart for the Python SDK [simulate: active]"
    timeout  = "10s"
    triggers = { release = "2.6.0" }
  }

  expect_failures = [agent_job.this]
}
