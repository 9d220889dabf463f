// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// movedState is a file of testdata/moved.
type movedState struct {
	Provider      string          `json:"provider"`
	Type          string          `json:"type"`
	SchemaVersion int64           `json:"schema_version"`
	Attributes    json.RawMessage `json:"attributes"`
}

func readMoved(t *testing.T, name string) movedState {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "moved", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var moved movedState
	if err := json.Unmarshal(text, &moved); err != nil {
		t.Fatal(err)
	}
	return moved
}

// move asks a provider that is not configured, as the CLI does.
func move(c *fakecli.CLI, from movedState) []*tfprotov6.Diagnostic {
	c.T.Helper()
	resp, err := c.Server.MoveResourceState(c.T.Context(), &tfprotov6.MoveResourceStateRequest{
		SourceProviderAddress: from.Provider, SourceTypeName: from.Type, SourceSchemaVersion: from.SchemaVersion,
		SourceState: &tfprotov6.RawState{JSON: from.Attributes}, TargetTypeName: "agent_job",
	})
	if err != nil {
		c.T.Fatal(err)
	}
	c.State, c.Identity, c.Private = c.Decode(resp.TargetState), resp.TargetIdentity, resp.TargetPrivate
	return resp.Diagnostics
}

func TestMoveState(t *testing.T) {
	files, err := filepath.Glob("testdata/moved/*.json")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		c := fakecli.Unconfigured(t)
		diags := move(c, readMoved(t, name))
		if strings.HasPrefix(name, "refused_") {
			harness.Contains(t, fakecli.Text(diags), "ERROR: Failed to move to agent_job", "does not name a job", "Nothing was changed or sent.", "removed block")
			continue
		}
		want := attrs{"project_id": "proj_123", "id": "job_456"}
		if len(diags) > 0 || !c.State.Equal(fakecli.Object(c.Resource, want)) {
			t.Errorf("%s: %s, want %v and nulls; %s", name, c.State, want, fakecli.Text(diags))
		}
		identity := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"project_id": tftypes.String, "id": tftypes.String}}
		got, err := c.Identity.IdentityData.Unmarshal(identity)
		if err != nil || !got.Equal(fakecli.Object(identity, want)) {
			t.Errorf("%s: identity %s, %v", name, got, err)
		}
	}
}

// Providers, types and states that no file of testdata has. OpenTofu does not
// always name the former provider in full: see matchesProvider.
func TestMoveState_forms(t *testing.T) {
	const (
		good             = `{"id":"/v2/agent/proj_123/job/job_456","path":"/v2/agent/proj_123/job"}`
		others, nameless = "Unable to Move Resource State", "does not name a job"
	)
	for _, test := range []struct{ provider, typeName, state, says string }{
		{"restful", "restful_resource", good, ""},
		{"restful", "restful_operation", good, ""},
		{"restapi", "restapi_object", good, ""},
		{"registry.opentofu.org/agentjobs/agent", "restful_resource", good, ""},
		{"registry.example.com/private/agent", "restapi_object", good, ""},

		{"registry.terraform.io/example/restful", "restful_resource", good, others},
		{"h/magodo/restful", "restful_list", good, others},
		{"h/magodo/restful", "restapi_object", good, others},
		{"magodo/restful", "restful_resource", good, others},
		{"restapi", "restful_resource", good, others},

		{"restful", "restful_resource", `{"id":"x","path":"/v2/agent/proj_123/job","output":"{\"id\":\"job_456\"}"}`, ""},
		{"restful", "restful_resource", `{"id":"x","path":"/v2/agent/proj_123/job","output":{"id":"job_456"}}`, ""},
		{"restful", "restful_resource", `{"id":"x","path":"/v2/agent/proj_123/job/job_456"}`, ""},
		{"restapi", "restapi_object", `{"id":"/v2/agent/proj_123/job/job_456","path":"/elsewhere"}`, ""},
		{"restapi", "restapi_object", `{"id":"x","path":"/v2/agent/proj_123/job/job_456"}`, ""},
		{"restful", "restful_resource", `{"id":"/v2/agent/a%20b/job/job_456","path":"/here"}`,
			`with the id "/v2/agent/a%20b/job/job_456" and the path "/here" does not name a job`},
		{"restful", "restful_resource", `{"id":"/v2/agent/a%2fproj_123/job/job_456"}`, `and the path ""`},
		{"restful", "restful_resource", "", nameless},
		{"restful", "restful_resource", `{"id":7,"path":{}}`, nameless},
		{"restful", "restful_resource", `{"id":"x","path":"job"}`, nameless},
		{"restapi", "restapi_object", "", nameless},
		{"restapi", "restapi_object", `{"id":"x","path":"job"}`, nameless},
	} {
		c := fakecli.Unconfigured(t)
		diags := move(c, movedState{Provider: test.provider, Type: test.typeName, Attributes: json.RawMessage(test.state)})
		if got := fakecli.Text(diags); test.says != "" && !strings.Contains(got, test.says) ||
			test.says == "" && (got != "" || c.Get("project_id") != "proj_123" || c.Get("id") != "job_456") {
			t.Errorf("%+v: state %s, %s", test, c.State, got)
		}
	}
}

// A moved job is recorded by the next apply, and nothing is ever sent.
func TestMoveState_recorded(t *testing.T) {
	for _, prompt := range []string{"prompt", "prompt_wo"} {
		t.Run(prompt, func(t *testing.T) {
			s := harness.NewService(t, nil)
			id := s.Create("proj_123", "before").ID
			s.SetStatus(id, "completed")
			c := fakecli.Unconfigured(t)
			moved := readMoved(t, "restapi_object")
			moved.Attributes = json.RawMessage(strings.ReplaceAll(string(moved.Attributes), "job_456", id))
			if diags := move(c, moved); fakecli.Failed(diags) {
				t.Fatal(fakecli.Text(diags))
			}
			c.Connect(s.Attrs())
			config := attrs{prompt: "Add a quickstart", "triggers": attrs{"a": "1"}}
			harness.Contains(t, fakecli.Text(c.Run(t.Context(), config)), "Prompt recorded without sending it")
			if diags := c.Run(t.Context(), config); len(diags) > 0 || !c.Empty() {
				t.Errorf("a plan after the move changes something, or says: %s", fakecli.Text(diags))
			}
			if c.Get("id") != id || c.Get("status") != "completed" || c.Get("project_id") != "proj_123" ||
				(c.Get("prompt") != nil) != (prompt == "prompt") || c.Get("prompt_wo") != nil {
				t.Errorf("state after the move: %s", c.State)
			}
			s.Sent(t, 0, 0)
		})
	}
}
