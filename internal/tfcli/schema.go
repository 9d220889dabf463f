// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package tfcli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
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

// ProviderSchema returns the schemas of the provider at address
// ("HOST/NAMESPACE/NAME") as the JSON document that tfplugindocs reads, which
// has them under the plain name. The plugin is what InstallPlugin made of it.
func (c CLI) ProviderSchema(ctx context.Context, plugin Plugin, address string) ([]byte, error) {
	tmp, err := os.MkdirTemp("", "tfcli-schema-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // in the system's folder for such rests

	// Which registry a source without a host is short for differs between products.
	_, source, _ := strings.Cut(address, "/")
	name := path.Base(source)
	main := fmt.Sprintf("terraform {\n  required_providers {\n    %s = { source = %q }\n  }\n}\n", name, source)
	if err := os.WriteFile(filepath.Join(tmp, "main.tf"), []byte(main), 0o600); err != nil {
		return nil, err
	}
	cmd := c.Command(ctx, plugin.OverrideConfig, "providers", "schema", "-json")
	cmd.Dir = tmp
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
	for key, schema := range doc.Schemas {
		if strings.HasSuffix(key, "/"+source) {
			doc.Schemas = map[string]json.RawMessage{name: schema}
			return json.Marshal(doc)
		}
	}
	return nil, fmt.Errorf("%s told no schema of %s", c, source)
}
