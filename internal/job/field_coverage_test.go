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

// A plan of a message leaves open what its wait shows, and the apply keeps the rest as it was, whatever the service returns.
func TestPlanOfAMessagePromisesAllButTheRun(t *testing.T) {
	open := []string{"status", "pr_link"}
	models := func(_ string, turn int) simulator.Script {
		extra := map[string]any{"model": fmt.Sprint("model ", turn)}
		if turn == 0 {
			extra["createdAt"] = nil
		}
		return simulator.Script{Duration: 150 * time.Millisecond, Extra: extra}
	}
	c := fakecli.New(t, harness.NewService(t, models).Attrs())
	wantErrors(t, append(c.Run(t.Context(), attrs{"prompt": "write"}), c.Plan(t.Context(), attrs{"prompt": "write more"})...))
	for _, name := range c.Computed {
		if promised := c.Attribute(c.Planned, name) != (unknown{}); promised == slices.Contains(open, name) {
			t.Errorf("the plan promises %s: %t. If a wait shows it, add it to markRunUnknown and keepPlanned (model.go)", name, promised)
		}
	}
	before := c.Get("model")
	wantErrors(t, c.Apply(t.Context(), attrs{"prompt": "write more"}))
	c.Refresh(t.Context())
	if c.Get("model") == before || c.Get("created_at") == nil {
		t.Errorf("after a refresh, the model is %s, which before the message was %s, and created_at %v", c.Get("model"), before, c.Get("created_at"))
	}
}
