// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

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

// record is one of the service with these values, but for the id, which the simulator chooses.
func record(value func(field string) any) map[string]any {
	source := map[string]any{}
	fields := map[string]any{"source": source}
	for _, row := range contract {
		switch name, inSource := strings.CutPrefix(row.field, "source."); {
		case inSource:
			source[name] = value(row.field)
		case row.field != "id" && row.field != "source":
			fields[row.field] = value(row.field)
		}
	}
	return fields
}

// Every field of the service's record is exposed, with its value, by the resource and the data source. Neither the key,
// if the service echoes it, nor a control character comes into the state. Red without: printable in set, and maskBody.
func TestFieldCoverage(t *testing.T) {
	const link = "https://example.com/pull/77"
	extra := record(func(field string) any { return "a\x1b[31m" + harness.CanaryKey + field })
	extra["prLink"] = link
	exposed, want := []string{"project_id"}, []string{`"pr_link":tftypes.String<"` + link + `">`}
	for _, row := range contract {
		exposed = append(exposed, row.attribute)
		if row.field != "id" && row.field != "source" && row.field != "prLink" {
			want = append(want, fmt.Sprintf(`%q:tftypes.String<"a\u001b[31m(sensitive value)%s">`, row.attribute, row.field))
		}
	}
	s := harness.NewService(t, harness.Always(simulator.Script{Extra: extra}))
	c := fakecli.New(t, s.Attrs())
	c.Run(t.Context(), attrs{"prompt": "write", "wait": attrs{"enabled": false}})
	id := s.OnlyJob(t).ID
	want = append(want, `"id":tftypes.String<"`+id+`">`)
	harness.Contains(t, c.State.String(), want...)
	data, _ := c.Data(t.Context(), attrs{"id": id})
	harness.Contains(t, data.String(), want...)
	for _, name := range c.Computed {
		if !slices.Contains(exposed, name) {
			t.Errorf("%s has no row in contract", name)
		}
	}
}

// A field of another type than the contract's is null. Without a status, a job is active, and without an id, it is lost.
func TestFieldCoverage_otherTypes(t *testing.T) {
	want := []string{`"status":tftypes.String<"active">`}
	for _, row := range contract {
		if row.field != "id" && row.field != "source" && row.field != "status" {
			want = append(want, fmt.Sprintf(`%q:tftypes.String<null>`, row.attribute))
		}
	}
	for _, other := range []any{7, true, []string{"a"}, attrs{"a": "b"}} {
		extra := record(func(string) any { return other })
		c := fakecli.New(t, harness.NewService(t, harness.Always(simulator.Script{Extra: extra})).Attrs())
		c.Run(t.Context(), attrs{"prompt": "write", "wait": attrs{"enabled": false}})
		harness.Contains(t, c.State.String(), want...)
	}
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
			t.Errorf("the plan promises %s: %t. Can a message change it? If so, it belongs into markComputedUnknown (model.go), if not, into this test", name, promised)
		}
	}
}
