// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package tfcli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// FindForDocs is Find for generating documentation, which must not depend on
// the CLI that happens to be there: it takes Terraform since 1.14 alone, and
// builds one in the end. Older ones leave resource identity, and OpenTofu
// leaves actions, out of their schema output without a word.
func FindForDocs(ctx context.Context, log io.Writer) (CLI, error) {
	found, err := chosen(ctx)
	if err != nil {
		return CLI{}, err
	}
	for _, cli := range append(found, All(ctx, log)...) {
		if cli.HasActions() {
			return cli, nil
		}
		logf(log, "passed over, its schema output is not complete: %s", cli)
	}
	return downloadOrBuild(ctx, Terraform, log)
}

// ProviderSchema returns the provider's schemas as the JSON document that
// tfplugindocs reads, which has them under the plain name. It installs the
// plugin in dir, an empty folder.
func (c CLI) ProviderSchema(ctx context.Context, dir string) ([]byte, error) {
	plugin, err := InstallPlugin(ctx, dir)
	if err != nil {
		return nil, err
	}
	main := fmt.Sprintf("terraform {\n  required_providers {\n    agent = { source = %q }\n  }\n}\n", Source)
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(main), 0o600); err != nil {
		return nil, err
	}
	cmd := c.Command(ctx, plugin.OverrideConfig, "providers", "schema", "-json")
	cmd.Dir = dir
	text, err := output(cmd)
	if err != nil {
		return nil, err
	}

	var doc struct {
		FormatVersion string                     `json:"format_version"`
		Schemas       map[string]json.RawMessage `json:"provider_schemas"`
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	// Which registry a source without a host is short for differs between products.
	for key, schema := range doc.Schemas {
		if strings.HasSuffix(key, "/"+Source) {
			doc.Schemas = map[string]json.RawMessage{"agent": schema}
			return json.Marshal(doc)
		}
	}
	return nil, fmt.Errorf("%s told no schema of %s", c, Source)
}
