// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

const migrating = "guides/migrating/"

func migratingFiles() []string {
	return []string{
		migrating + "restful_resource.tf", migrating + "restful_operation.tf", migrating + "restapi_object.tf",
		migrating + "import.tf",
	}
}

// A state of another provider, and a stand-in for that provider, whose schema
// is all that the CLI wants of it.
func TestAccMoved(t *testing.T) {
	all := newTrials(t)
	for name, count := range map[string]int{"restful_resource": 1, "restful_operation": 1, "restapi_object": 1, "restful_resource, count": 2} {
		t.Run(name, func(t *testing.T) {
			all.since(t, "1.8.0", "1.10.0") // moved blocks between types
			s := all.start(t, 0)
			typeName, _, _ := strings.Cut(name, ",")
			text, err := os.ReadFile(filepath.Join("..", "..", "job", "testdata", "moved", typeName+".json"))
			if err != nil {
				t.Fatal(err)
			}
			var moved struct {
				Provider      string                     `json:"provider"`
				SchemaVersion int64                      `json:"schema_version"`
				Attributes    map[string]json.RawMessage `json:"attributes"`
			}
			var instances []any
			for i := range count {
				id := s.service.Create("proj_123", "from elsewhere").ID
				moved.Attributes = nil // each has a map of its own
				if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), "job_456", id)), &moved); err != nil {
					t.Fatal(err)
				}
				instance := map[string]any{"schema_version": moved.SchemaVersion, "attributes": moved.Attributes}
				if count > 1 {
					instance["index_key"] = i
				}
				instances = append(instances, instance)
			}
			address := strings.ToLower(moved.Provider)
			if all.cli.Product == tfcli.Tofu {
				address = strings.Replace(address, "registry.terraform.io", "registry.opentofu.org", 1)
			}
			s.env = append(s.env, "TF_REATTACH_PROVIDERS="+startStandIn(t, address, typeName, moved.SchemaVersion, moved.Attributes))
			state, err := json.Marshal(map[string]any{
				"version": 4, "terraform_version": "1.0.0", "serial": 1, "lineage": "test", "outputs": map[string]any{},
				"resources": []any{map[string]any{
					"mode": "managed", "type": typeName, "name": "quickstart", "provider": fmt.Sprintf("provider[%q]", address),
					"instances": instances,
				}},
			})
			if err != nil {
				t.Fatal(err)
			}
			s.write(t, "terraform.tfstate", string(state))
			config := all.read(t, migrating+typeName+".tf")
			if count > 1 {
				config = strings.Replace(config, "  prompt =", fmt.Sprintf("  count  = %d\n  prompt =", count), 1)
			}
			s.write(t, "main.tf", config)
			// One after the other, because OpenTofu tells another source of all but the first.
			shown := s.call(t, "plan", "-parallelism=1")
			if !strings.Contains(shown, typeName+".quickstart has moved to agent_job.quickstart") &&
				!strings.Contains(shown, "moved from "+typeName+".quickstart") {
				t.Errorf("no move in the plan:\n%s", shown)
			}
			s.call(t, "apply", "-auto-approve", "-parallelism=1")
			s.call(t, "plan", "-detailed-exitcode")
			want := slices.Repeat([][]string{{"from elsewhere"}}, count)
			if diff := cmp.Diff(want, s.prompts()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The generated configuration lacks the prompt: nobody but the user knows it.
func TestAccGenerateConfig(t *testing.T) {
	t.Parallel()
	all := newTrials(t)
	all.since(t, "1.5.0", "")
	s := all.start(t, 0)
	id := s.service.Create("proj_123", "from elsewhere").ID
	s.write(t, "import.tf", strings.ReplaceAll(all.read(t, migrating+"import.tf"), "job_456", id))
	shown, ok := s.try(t, "plan", "-generate-config-out=generated.tf")
	if ok || !strings.Contains(shown, "Exactly one of these attributes must be configured: [prompt,prompt_wo]") {
		t.Errorf("%t\n%s", ok, shown)
	}
	generated, err := os.ReadFile(filepath.Join(s.dir, "generated.tf"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(generated), "prompt     = null") {
		t.Errorf("%s", generated)
	}
	s.write(t, "generated.tf", strings.ReplaceAll(string(generated), "prompt     = null", `prompt = "Add a quickstart for the Python SDK"`))
	s.call(t, "apply", "-auto-approve")
	s.call(t, "plan", "-detailed-exitcode")
	if diff := cmp.Diff([][]string{{"from elsewhere"}}, s.prompts()); diff != "" {
		t.Error(diff)
	}
}
