// A module of its own that only Terraform's repository has.
module github.com/hashicorp/terraform/internal/legacy

go 1.26.0
