resource "agent_job" "release_notes" {
  name       = "release-notes"
  prompt     = "Write the release notes of the latest release"
  project_id = "proj_123"

  # A new value starts a new job.
  triggers = { release = "2.4.0" }

  wait {
    on_failure = "warn"
  }

  timeouts {
    create = "30m"
    update = "30m"
  }
}
