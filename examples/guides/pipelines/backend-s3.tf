backend "s3" {
  bucket       = "ci-state"
  key          = "agent/terraform.tfstate" # the journal is below agent/terraform.tfstate.agent-journal/
  region       = "eu-central-1"
  use_lockfile = true
}
