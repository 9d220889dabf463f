// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

const migrating = "guides/migrating/"

func migratingFiles() []string {
	return []string{
		migrating + "restful_resource.tf", migrating + "restful_operation.tf", migrating + "restapi_object.tf",
		migrating + "import.tf",
	}
}

// A state of another provider, whose schema is all that the CLI wants of that provider.
func TestAccMoved(t *testing.T) {
	t.Parallel()
	for _, typeName := range []string{"restful_resource", "restful_operation", "restapi_object"} {
		t.Run(typeName, func(t *testing.T) {
			t.Parallel()
			s := start(t, 0)
			text, err := os.ReadFile(filepath.Join(root, "internal", "job", "testdata", "moved", typeName+".json"))
			if err != nil {
				t.Fatal(err)
			}
			id := s.service.Create("proj_123", "from elsewhere").ID
			var moved struct {
				Provider      string         `json:"provider"`
				SchemaVersion int64          `json:"schema_version"`
				Attributes    map[string]any `json:"attributes"`
			}
			if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), "job_456", id)), &moved); err != nil {
				t.Fatal(err)
			}
			address := strings.ToLower(moved.Provider)
			if cli.Product == tfcli.Tofu {
				address = strings.Replace(address, "registry.terraform.io", "registry.opentofu.org", 1)
			}
			block := &tfprotov6.SchemaBlock{}
			for name, value := range moved.Attributes {
				block.Attributes = append(block.Attributes, &tfprotov6.SchemaAttribute{Name: name, Type: typeOf(value), Optional: true})
			}
			schema := &tfprotov6.Schema{Version: moved.SchemaVersion, Block: block}
			s.env = append(s.env, "TF_REATTACH_PROVIDERS="+providerWithSchema{typeName: typeName, schema: schema}.serve(t, address))
			state, err := json.Marshal(map[string]any{
				"version": 4, "terraform_version": "1.0.0", "serial": 1, "lineage": "test",
				"resources": []any{map[string]any{
					"mode": "managed", "type": typeName, "name": "quickstart", "provider": fmt.Sprintf("provider[%q]", address),
					"instances": []any{map[string]any{"schema_version": moved.SchemaVersion, "attributes": moved.Attributes}},
				}},
			})
			if err != nil {
				t.Fatal(err)
			}
			s.write("terraform.tfstate", string(state))
			s.write("main.tf", read(t, migrating+typeName+".tf"))
			if shown := s.call("plan"); !strings.Contains(shown, typeName+".quickstart has moved to agent_job.quickstart") &&
				!strings.Contains(shown, "moved from "+typeName+".quickstart") {
				t.Errorf("no move in the plan:\n%s", shown)
			}
			s.apply()
			s.expect([]string{"from elsewhere"})
		})
	}
}

// typeOf is the type of an attribute that can hold the value.
func typeOf(value any) tftypes.Type {
	switch value := value.(type) {
	case bool:
		return tftypes.Bool
	case []any:
		return tftypes.List{ElementType: tftypes.String}
	case map[string]any:
		if _, dynamic := value["type"]; dynamic {
			return tftypes.DynamicPseudoType
		}
		return tftypes.Map{ElementType: tftypes.String}
	}
	return tftypes.String
}

// providerWithSchema is a provider that has a schema and nothing else: a move must not
// even configure it.
type providerWithSchema struct {
	tfprotov6.ProviderServer // nil, so that any other call ends the test

	typeName string
	schema   *tfprotov6.Schema
}

func (p providerWithSchema) GetProviderSchema(context.Context, *tfprotov6.GetProviderSchemaRequest) (*tfprotov6.GetProviderSchemaResponse, error) {
	return &tfprotov6.GetProviderSchemaResponse{
		Provider:        &tfprotov6.Schema{Block: &tfprotov6.SchemaBlock{}},
		ResourceSchemas: map[string]*tfprotov6.Schema{p.typeName: p.schema},
	}, nil
}

func (providerWithSchema) GetResourceIdentitySchemas(context.Context, *tfprotov6.GetResourceIdentitySchemasRequest) (*tfprotov6.GetResourceIdentitySchemasResponse, error) {
	return &tfprotov6.GetResourceIdentitySchemasResponse{}, nil
}

func (providerWithSchema) StopProvider(context.Context, *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	return &tfprotov6.StopProviderResponse{}, nil
}

// serve serves the provider until the test ends. It returns what
// TF_REATTACH_PROVIDERS must be for a CLI to use it.
func (p providerWithSchema) serve(t *testing.T, address string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, closed := channelFor(tf6server.WithDebug), make(chan struct{})
	go func() {
		err := tf6server.Serve(address, func() tfprotov6.ProviderServer { return p }, tf6server.WithDebug(ctx, ready, closed))
		if err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-closed
	})
	reattach := <-ready
	return fmt.Sprintf(`{%q: {"Protocol": %q, "ProtocolVersion": 6, "Pid": %d, "Test": true, "Addr": {"Network": %q, "String": %q}}}`,
		address, reattach.Protocol, reattach.Pid, reattach.Addr.Network(), reattach.Addr.String())
}

// channelFor spares an import of the package that has the type.
func channelFor[T any](func(context.Context, chan T, chan struct{}) tf6server.ServeOpt) chan T {
	return make(chan T)
}

// The generated configuration lacks the prompt: nobody but the user knows it.
func TestAccGenerateConfig(t *testing.T) {
	t.Parallel()
	s := start(t, 0)
	id := s.service.Create("proj_123", "from elsewhere").ID
	s.write("import.tf", strings.ReplaceAll(read(t, migrating+"import.tf"), "job_456", id))
	shown, ok := s.try("plan", "-generate-config-out=generated.tf")
	if ok || !strings.Contains(shown, "Exactly one of these attributes must be configured: [prompt,prompt_wo]") {
		t.Errorf("%t\n%s", ok, shown)
	}
	generated, err := os.ReadFile(filepath.Join(s.dir, "generated.tf"))
	if err != nil || !strings.Contains(string(generated), "prompt     = null") {
		t.Fatalf("%v\n%s", err, generated)
	}
	s.write("generated.tf", strings.ReplaceAll(string(generated), "prompt     = null", `prompt = "Add a quickstart for the Python SDK"`))
	s.apply()
	s.expect([]string{"from elsewhere"})
}
