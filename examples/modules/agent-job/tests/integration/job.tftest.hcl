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

run "a_failed_job_is_kept" {
  variables {
    prompt     = "Add a quickstart for the Python SDK [simulate: 1s, failed]"
    on_failure = "warn"
    triggers   = { release = "2.5.0" }
  }

  assert {
    condition     = output.status == "failed" && output.pr_link == null
    error_message = "The job is ${output.status}."
  }
}
