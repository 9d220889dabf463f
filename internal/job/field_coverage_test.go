// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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

// Every field of the service's record is exposed, with its value, by the resource and the data source. Neither the key,
// if the service echoes it, nor a control character comes into the state. Red without: printable in set, and key.text in decodeJob. (P05)
func TestFieldCoverage(t *testing.T) {
	const link = "https://example.com/pull/77"
	source := map[string]any{}
	extra := map[string]any{"source": source, "prLink": link}
	exposed, want := []string{"project_id"}, []string{`"pr_link":tftypes.String<"` + link + `">`}
	for _, row := range contract {
		exposed = append(exposed, row.attribute)
		if row.field == "id" || row.field == "source" || row.field == "prLink" {
			continue
		}
		fields, name := extra, row.field
		if inSource, ok := strings.CutPrefix(name, "source."); ok {
			fields, name = source, inSource
		}
		fields[name] = "a\x1b[31m" + harness.CanaryKey + row.field
		want = append(want, fmt.Sprintf(`%q:tftypes.String<"a\u001b[31m(sensitive value)%s">`, row.attribute, row.field))
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
		if name != "messages" && name != "prompt_wo_hash" && !slices.Contains(exposed, name) {
			t.Errorf("%s has no row in contract", name)
		}
	}
}

// What a message or a resumed wait reads is in the state of its apply, also what was null before, or is null now: the plan has promised
// only what never changes. Red without: markRunUnknown; without a field of shownJob in it.
func TestPlanPromisesOnlyWhatStays(t *testing.T) {
	stays := []string{"id", "project_id", "messages", "prompt_wo_hash"}
	for name, next := range map[string]attrs{
		"a resumed wait": {"prompt": "write"},
		"a message":      {"prompt": "write more", "wait": attrs{"enabled": false}},
	} {
		t.Run(name, func(t *testing.T) {
			extra := attrs{"source": nil}
			var want []string
			for _, row := range contract {
				if field := row.field; field != "id" && field != "status" && field != "prLink" && field != "source" && !strings.HasPrefix(field, "source.") {
					extra[field] = nil
				}
			}
			s := harness.NewService(t, harness.Always(simulator.Script{Duration: time.Hour, Extra: extra}))
			c := fakecli.New(t, s.Attrs())
			wantErrors(t, c.Run(t.Context(), attrs{"prompt": "write", "wait": attrs{"enabled": false}}))
			source := map[string]any{}
			for _, row := range contract {
				value := "the new " + row.field
				if field, inSource := strings.CutPrefix(row.field, "source."); inSource {
					source[field] = value
				} else if _, isNull := extra[row.field]; isNull && row.field != "source" {
					extra[row.field] = value
				} else {
					continue
				}
				want = append(want, fmt.Sprintf(`%q:tftypes.String<%q>`, row.attribute, value))
			}
			extra["source"] = source
			s.SetStatus(s.OnlyJob(t).ID, "completed")
			wantErrors(t, c.Plan(t.Context(), next))
			for _, name := range c.Computed {
				if promised := c.Attribute(c.Planned, name) != (unknown{}); promised != slices.Contains(stays, name) {
					t.Errorf("the plan promises %s: %t", name, promised)
				}
			}
			wantErrors(t, c.Apply(t.Context(), next))
			harness.Contains(t, c.State.String(), want...)
			created := c.Get("created_at")
			for field := range extra {
				extra[field] = nil
			}
			extra["createdAt"] = "another time"
			wantErrors(t, c.Run(t.Context(), attrs{"prompt": "write again", "wait": attrs{"enabled": false}}))
			for _, row := range contract {
				want := map[string]any{"created_at": created}[row.attribute]
				if _, changes := extra[row.field]; changes && c.Get(row.attribute) != want {
					t.Errorf("%s is %v, want %v", row.attribute, c.Get(row.attribute), want)
				}
			}
		})
	}
}
