# For Azure, instead of backend-s3.tf. In github-actions.yml, replace the step configure-aws-credentials with these lines of env:
#   ARM_USE_OIDC: "true"
#   ARM_CLIENT_ID: ${{ vars.ARM_CLIENT_ID }} # a variable of each environment, whose app has a federated credential for it
#   ARM_TENANT_ID: ${{ vars.ARM_TENANT_ID }}
#   ARM_SUBSCRIPTION_ID: ${{ vars.ARM_SUBSCRIPTION_ID }}
# On the container, give the app of agent-plan the role "Storage Blob Data Reader", and that of agent-apply
# "Storage Blob Data Contributor". Keep nothing else there. It never ran on Azure.
terraform {
  backend "azurerm" {
    storage_account_name = "cistate"
    container_name       = "agent"
    key                  = "terraform.tfstate" # the journal is below terraform.tfstate.agent-journal/
    use_azuread_auth     = true
  }
}
