terraform {
  extra_arguments "journal" {
    commands = concat(get_terraform_commands_that_need_vars(), ["query"])
    env_vars = {
      AGENT_JOURNAL_URL = "s3://ci-state/agent-journal?region=eu-central-1"
    }
  }
}
