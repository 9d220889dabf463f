terraform {
  backend "azurerm" {
    storage_account_name = "cistate"
    container_name       = "agent"
    key                  = "terraform.tfstate" # the journal is below terraform.tfstate.agent-journal/
    use_azuread_auth     = true
  }
}
