// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package terraform is empty: only tests of Terraform itself use the original,
// and `go mod tidy` looks for what those import.
package terraform
