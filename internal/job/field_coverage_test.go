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

type contractRow struct{ field, description, attribute string }

// contract quotes the service's own description of a job record, and says
// beside each field where it is exposed.
var contract = []contractRow{
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

// flatten gives the leaves and objects of a record by their dotted names.
func flatten(record map[string]any, prefix string, into map[string]any) {
	for name, value := range record {
		into[prefix+name] = value
		if inner, ok := value.(map[string]any); ok {
			flatten(inner, prefix+name+".", into)
		}
	}
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
	for _, name := range c.Computed {
		if name != "project_id" && !slices.ContainsFunc(contract, func(row contractRow) bool { return row.attribute == name }) {
			t.Errorf("no field of the contract is exposed as %s", name)
		}
	}
	record := map[string]any{}
	flatten(getRecord(t, s, id), "", record)
	var fields []string
	for _, row := range contract {
		fields = append(fields, row.field)
		want, isText := record[row.field].(string)
		if row.field != "source" && (!isText || want == "") {
			t.Errorf("the simulator's record has no %s to compare", row.field)
		}
		shown := fmt.Sprintf(`%q:tftypes.String<%q>`, row.attribute, want)
		if isText && (!strings.Contains(c.State.String(), shown) || !strings.Contains(data.String(), shown)) {
			t.Errorf("%s is missing: resource %s, data source %s", shown, c.State, data)
		}
	}
	slices.Sort(fields)
	if diff := cmp.Diff(fields, slices.Sorted(maps.Keys(record))); diff != "" {
		t.Errorf("fields of the contract (-) and of the simulator (+):\n%s", diff)
	}
}

// getRecord asks the service itself, past the provider's client.
func getRecord(t *testing.T, s *harness.Service, id string) map[string]any {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v2/agent/"+harness.Project+"/job/"+id, nil)
	req.Header.Set("Authorization", "Bearer "+harness.CanaryKey)
	resp, record := httptest.NewRecorder(), map[string]any{}
	s.ServeHTTP(resp, req)
	if err := json.Unmarshal(resp.Body.Bytes(), &record); err != nil {
		t.Fatalf("%v: %s", err, resp.Body)
	}
	return record
}
