// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// contract quotes the service's own description of a job record, and says
// beside each field where it is exposed.
var contract = []struct{ field, description, attribute string }{
	{"id", "string, identifier of the job", "id"},
	{"status", "active, completed, archived or failed", "status"},
	{"source", "object", "source"},
	{"source.repository", "string", "repository"},
	{"source.ref", "string, for example a branch", "ref"},
	{"model", "string, the AI model used", "model"},
	{"prLink", "string (URL) or null; null while active, null if no files were changed", "pr_link"},
	{"createdAt", "string, ISO 8601 UTC", "created_at"},
	{"archivedAt", "string, ISO 8601 UTC", "archived_at"},
}

// Every field of the service's record is exposed, with its value, by the
// resource and the data source; and the simulator shows no other field.
func TestFieldCoverage(t *testing.T) {
	s := harness.NewService(t, harness.Always(simulator.Script{Status: "archived"})) // the end that fills every field
	c := fakecli.New(t, s.Attrs())
	if diags := c.Run(t.Context(), attrs{"prompt": "write"}); fakecli.Failed(diags) {
		t.Fatal(fakecli.Text(diags))
	}
	id := s.OnlyJob(t).ID
	data, _ := c.Data(t.Context(), attrs{"id": id})
	record := getRecord(t, s, id)
	exposed, fields := []string{"project_id"}, []string{}
	for _, row := range contract {
		exposed, fields = append(exposed, row.attribute), append(fields, row.field)
		want, isText := record[row.field].(string)
		if row.field != "source" && (!isText || want == "") {
			t.Errorf("the simulator's record has no %s to compare", row.field)
		}
		shown := fmt.Sprintf(`%q:tftypes.String<%q>`, row.attribute, want)
		if isText && (!strings.Contains(c.State.String(), shown) || !strings.Contains(data.String(), shown)) {
			t.Errorf("%s is missing: resource %s, data source %s", shown, c.State, data)
		}
	}
	for _, name := range c.Computed {
		if !slices.Contains(exposed, name) {
			t.Errorf("no field of the contract is exposed as %s", name)
		}
	}
	slices.Sort(fields)
	if diff := cmp.Diff(fields, slices.Sorted(maps.Keys(record))); diff != "" {
		t.Errorf("fields of the contract (-) and of the simulator (+):\n%s", diff)
	}
}

// getRecord asks the service itself, past the provider's client. Fields of the source have dotted names.
func getRecord(t *testing.T, s *harness.Service, id string) map[string]any {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v2/agent/"+harness.Project+"/job/"+id, nil)
	req.Header.Set("Authorization", "Bearer "+harness.CanaryKey)
	resp, record := httptest.NewRecorder(), map[string]any{}
	s.ServeHTTP(resp, req)
	if err := json.Unmarshal(resp.Body.Bytes(), &record); err != nil {
		t.Fatalf("%v: %s", err, resp.Body)
	}
	for name, value := range record["source"].(map[string]any) {
		record["source."+name] = value
	}
	return record
}

// Neither the key, if the service echoes it, nor a control character comes into the state.
// Red without: printable in apply, and maskBody.
func TestEveryTextIsSafeInTheState(t *testing.T) {
	const raw, safe = "a\x1b[31m" + harness.CanaryKey, `a\u001b[31m(sensitive value)`
	source := map[string]any{}
	extra := map[string]any{"source": source}
	var want []string
	for _, row := range contract {
		switch name, inSource := strings.CutPrefix(row.field, "source."); {
		case row.field == "id" || row.field == "source" || row.field == "prLink": // which must be a link: P03_link
			continue
		case inSource:
			source[name] = raw
		default:
			extra[name] = raw
		}
		want = append(want, fmt.Sprintf(`%q:tftypes.String<"%s">`, row.attribute, safe))
	}
	s := harness.NewService(t, harness.Always(simulator.Script{Extra: extra}))
	c := fakecli.New(t, s.Attrs())
	if diags := c.Run(t.Context(), attrs{"prompt": "write", "wait": attrs{"enabled": false}}); fakecli.Failed(diags) {
		t.Fatal(fakecli.Text(diags))
	}
	harness.Contains(t, c.State.String(), want...) // does apply in model.go use printable?
}

// A message may change every attribute that the service returns, except these.
func TestPlanOfAMessagePromisesOnlyWhatNeverChanges(t *testing.T) {
	never := []string{"id", "created_at", "project_id"}
	c := fakecli.New(t, harness.NewService(t, nil).Attrs())
	if diags := append(c.Run(t.Context(), attrs{"prompt": "write"}), c.Plan(t.Context(), attrs{"prompt": "write more"})...); fakecli.Failed(diags) {
		t.Fatal(fakecli.Text(diags))
	}
	for _, name := range c.Computed {
		if promised := c.Attribute(c.Planned, name) != (unknown{}); promised != slices.Contains(never, name) {
			t.Errorf("the plan promises %s: %t. Can a message change it? If so, it belongs into markComputedUnknown (plan.go), if not, into this test", name, promised)
		}
	}
}
