// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"fmt"
	"maps"
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

// shown gives each field of the record a value, but those for which it is nothing.
func shown(value func(field string) any) attrs {
	source := attrs{}
	record := attrs{"source": source}
	for _, row := range contract {
		if inSource, ok := strings.CutPrefix(row.field, "source."); ok {
			source[inSource] = value(row.field)
		} else if row.field != "id" && row.field != "source" {
			record[row.field] = value(row.field)
		}
	}
	return record
}

// Every field of the service's record is exposed, with its value, by the resource and the data source. Neither the key,
// if the service echoes it, nor a control character comes into the state. Red without: printable in set, and key.text in decodeJob. (P05)
func TestFieldCoverage(t *testing.T) {
	const link = "https://example.com/pull/77"
	extra := shown(func(field string) any { return "a\x1b[31m" + harness.CanaryKey + field })
	extra["prLink"] = link
	exposed, want := []string{"project_id", "messages", "prompt_wo_hash"}, []string{`"pr_link":tftypes.String<"` + link + `">`}
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
	data, _ := c.Data(t.Context(), attrs{"id": id})
	for _, state := range []string{c.State.String(), data.String()} {
		harness.Contains(t, state, append(want, `"id":tftypes.String<"`+id+`">`)...)
	}
	for _, name := range c.Computed {
		if !slices.Contains(exposed, name) {
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
			of := func(value func(field string) any) attrs {
				record := shown(value)
				delete(record, "status")
				record["prLink"] = nil
				return record
			}
			extra := of(func(string) any { return nil })
			s := harness.NewService(t, harness.Always(simulator.Script{Duration: time.Hour, Extra: extra}))
			c := fakecli.New(t, s.Attrs())
			wantErrors(t, c.Run(t.Context(), attrs{"prompt": "write", "wait": attrs{"enabled": false}}))
			maps.Copy(extra, of(func(field string) any { return "the new " + field }))
			s.SetStatus(s.OnlyJob(t).ID, "completed")
			wantErrors(t, c.Plan(t.Context(), next))
			for _, name := range c.Computed {
				if promised := c.Attribute(c.Planned, name) != (unknown{}); promised != slices.Contains(stays, name) {
					t.Errorf("the plan promises %s: %t", name, promised)
				}
			}
			wantErrors(t, c.Apply(t.Context(), next))
			for _, row := range contract {
				if !slices.Contains([]string{"id", "status", "source", "prLink"}, row.field) {
					harness.Contains(t, c.State.String(), fmt.Sprintf(`%q:tftypes.String<"the new %s">`, row.attribute, row.field))
				}
			}
			maps.Copy(extra, of(func(string) any { return nil }))
			extra["createdAt"] = "another time"
			wantErrors(t, c.Run(t.Context(), attrs{"prompt": "write again", "wait": attrs{"enabled": false}}))
			for _, name := range []string{"created_at", "archived_at", "model", "repository", "ref"} {
				want := map[string]any{"created_at": "the new createdAt"}[name]
				if got := c.Get(name); got != want {
					t.Errorf("%s is %v, want %v", name, got, want)
				}
			}
		})
	}
}
