// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package tffwdocs stands in for the library that writes restful's documentation, which
// not every module proxy has. It is never called while the provider serves a CLI.
package tffwdocs

type (
	// ProviderWithRenderOption is any provider here.
	ProviderWithRenderOption any
	// ResourceWithRenderOption is any resource here.
	ResourceWithRenderOption any
	// DataSourceWithRenderOption is any data source here.
	DataSourceWithRenderOption any
	// EphemeralResourceWithRenderOption is any ephemeral resource here.
	EphemeralResourceWithRenderOption any

	// ProviderRenderOption holds what a provider's page shows.
	ProviderRenderOption struct{ Examples []Example }
	// ResourceRenderOption holds what a resource's page shows.
	ResourceRenderOption struct {
		Examples, IdentityExamples []Example
		ImportId                   *ImportId
	}
	// DataSourceRenderOption holds what a data source's page shows.
	DataSourceRenderOption struct{ Examples []Example }
	// EphemeralResourceRenderOption holds what an ephemeral resource's page shows.
	EphemeralResourceRenderOption struct{ Examples []Example }

	// Example is one example.
	Example struct{ Header, Description, HCL string }
	// ImportId describes the id of an import.
	ImportId struct{ Format, ExampleId, ExampleCmdArg, ExampleBlk string }
)
