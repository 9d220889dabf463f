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
	c.State, c.Identity = c.Decode(resp.TargetState), resp.TargetIdentity
	c.Private = resp.TargetPrivate
	return resp.Diagnostics
}

func TestMoveState(t *testing.T) {
	files, err := filepath.Glob("testdata/moved/*.json")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			c := fakecli.Unconfigured(t)
			diags := move(c, readMoved(t, name))
			if strings.HasPrefix(name, "refused_") {
				harness.Contains(t, fakecli.Text(diags), "ERROR: Failed to move to agent_job", "does not name a job", "Nothing was changed.", "removed block")
				return
			}
			if len(diags) > 0 {
				t.Fatal(fakecli.Text(diags))
			}
			want := attrs{"project_id": "proj_123", "id": "job_456"}
			if !c.State.Equal(fakecli.Object(c.Resource, want)) {
				t.Errorf("state %s, want %v and nulls", c.State, want)
			}
			identity := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"project_id": tftypes.String, "id": tftypes.String}}
			got, err := c.Identity.IdentityData.Unmarshal(identity)
			if err != nil || !got.Equal(fakecli.Object(identity, want)) {
				t.Errorf("identity %s, %v", got, err)
			}
		})
	}
}

// OpenTofu does not always name the former provider in full: see matchesProvider.
func TestMoveStateFromAnOddAddress(t *testing.T) {
	for _, name := range []string{"restful_resource", "restful_operation", "restapi_object"} {
		bare, _, _ := strings.Cut(name, "_")
		for _, address := range []string{bare, "registry.opentofu.org/agentjobs/agent", "registry.example.com/private/agent"} {
			moved := readMoved(t, name)
			moved.Provider = address
			c := fakecli.Unconfigured(t)
			if diags := move(c, moved); len(diags) > 0 || !c.State.Equal(fakecli.Object(c.Resource, attrs{"project_id": "proj_123", "id": "job_456"})) {
				t.Errorf("%s from %s: %s %s", name, address, fakecli.Text(diags), c.State)
			}
		}
	}
}

// Attributes that no state of testdata has in this way.
func TestMoveStateOfOddForms(t *testing.T) {
	const restful, restapi = "restful_resource", "restapi_object"
	for name, test := range map[string]struct{ typeName, state, says string }{
		"answer as text":           {restful, `{"id":"x","path":"/v2/agent/proj_123/job","output":"{\"id\":\"job_456\"}"}`, ""},
		"answer without its type":  {restful, `{"id":"x","path":"/v2/agent/proj_123/job","output":{"id":"job_456"}}`, ""},
		"path of the job":          {restful, `{"id":"x","path":"/v2/agent/proj_123/job/job_456"}`, ""},
		"restapi, id is a path":    {restapi, `{"id":"/v2/agent/proj_123/job/job_456","path":"/elsewhere"}`, ""},
		"restapi, path of the job": {restapi, `{"id":"x","path":"/v2/agent/proj_123/job/job_456"}`, ""},
		"project with a space":     {restful, `{"id":"/v2/agent/a%20b/job/job_456","path":"/here"}`, `It has the id "/v2/agent/a%20b/job/job_456" and the path "/here".`},
		"escaped slash":            {restful, `{"id":"/v2/agent/a%2fproj_123/job/job_456"}`, `and the path ""`},
	} {
		t.Run(name, func(t *testing.T) {
			source := map[string]string{restful: "h/magodo/restful", restapi: "h/Mastercard/restapi"}[test.typeName]
			c := fakecli.Unconfigured(t)
			diags := move(c, movedState{Provider: source, Type: test.typeName, Attributes: json.RawMessage(test.state)})
			if test.says != "" {
				harness.Contains(t, fakecli.Text(diags), "does not name a job", test.says)
			} else if len(diags) > 0 || c.Get("project_id") != "proj_123" || c.Get("id") != "job_456" {
				t.Errorf("state %s, %s", c.State, fakecli.Text(diags))
			}
		})
	}
}

func TestMoveStateOfOthers(t *testing.T) {
	for name, change := range map[string]func(*movedState){
		"another namespace": func(m *movedState) { m.Provider = "registry.terraform.io/example/restful" },
		"another type":      func(m *movedState) { m.Type = "restful_list" },
		"restapi's type":    func(m *movedState) { m.Type = "restapi_object" },
		"no host":           func(m *movedState) { m.Provider = "magodo/restful" },
		"another name":      func(m *movedState) { m.Provider = "restapi" },
	} {
		t.Run(name, func(t *testing.T) {
			moved := readMoved(t, "restful_resource")
			change(&moved)
			if diags := move(fakecli.Unconfigured(t), moved); !fakecli.Failed(diags) {
				t.Errorf("taken over: %s", fakecli.Text(diags))
			}
		})
	}
	for name, state := range map[string]string{"empty": "", "null": "null", "a list": "[]", "no text": `{"id":7,"path":{}}`, "a word": `{"id":"x","path":"job"}`} {
		t.Run(name, func(t *testing.T) {
			for _, typeName := range []string{"restful_resource", "restapi_object"} {
				source := map[string]string{"restful_resource": "h/magodo/restful", "restapi_object": "h/Mastercard/restapi"}[typeName]
				diags := move(fakecli.Unconfigured(t), movedState{Provider: source, Type: typeName, Attributes: json.RawMessage(state)})
				harness.Contains(t, fakecli.Text(diags), "does not name a job")
			}
		})
	}
}

// A moved job is recorded by the next apply, and nothing is ever sent.
func TestMovedJobIsRecorded(t *testing.T) {
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
	config := attrs{"prompt": "Add a quickstart", "triggers": attrs{"a": "1"}}
	for range 2 {
		if diags := c.Run(t.Context(), config); len(diags) > 0 {
			t.Fatal(fakecli.Text(diags))
		}
	}
	wanted := attrs{"id": id, "status": "completed", "project_id": "proj_123", "prompt": "Add a quickstart"}
	for name, want := range wanted {
		if got := c.Get(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	c.Plan(t.Context(), config)
	if !c.Empty() {
		t.Error("a plan after the move changes something")
	}
	s.Sent(t, 0, 0)
}
