// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package consul stands in for Terraform's remote-state backend of that name,
// which is a module of its own that only Terraform's repository has.
package consul

import "github.com/hashicorp/terraform/internal/backend"

// New panics: no test of this project keeps its state there.
func New() backend.Backend {
	panic("this build of Terraform is for tests and has no backend \"consul\"")
}
