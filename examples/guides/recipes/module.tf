module "quickstart" {
  source = "git::https://github.com/agentjobs/terraform-provider-agent.git//examples/modules/agent-job?ref=v0.1.0"

  name    = "quickstart"
  prompt  = "Add a quickstart for the Python SDK"
  timeout = "30m"
}
