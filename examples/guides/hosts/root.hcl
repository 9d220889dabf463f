terraform {
  extra_arguments "journal" {
    commands = get_terraform_commands_that_need_vars()
    env_vars = {
      AGENT_JOURNAL_URL = "s3://ci-state/agent-journal?region=eu-central-1"
    }
  }
}
