terraform {
  cloud {
    organization = "example"

    workspaces {
      name = "documentation"
    }
  }
}
