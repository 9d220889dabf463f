// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// Neither the key, if the service echoes it, nor a control character comes into the state.
// Red without: printable in apply, and maskBody.
func TestEveryTextIsSafeInTheState(t *testing.T) {
	const raw, safe = "a\x1b[31m" + harness.CanaryKey, `a\u001b[31m(sensitive value)`
	extra, source := map[string]any{}, map[string]any{}
	extra["source"] = source
	for _, row := range contract {
		switch name, inSource := strings.CutPrefix(row.field, "source."); {
		case inSource:
			source[name] = raw
		case name != "id" && name != "source":
			extra[name] = raw
		}
	}
	s := harness.NewService(t, harness.Always(simulator.Script{Extra: extra}))
	c := fakecli.New(t, s.Attrs())
	if diags := c.Run(t.Context(), attrs{"prompt": "write", "wait": attrs{"enabled": false}}); fakecli.Failed(diags) {
		t.Fatal(fakecli.Text(diags))
	}
	for _, row := range contract {
		want := `"` + safe + `"`
		switch row.attribute {
		case "id", "source":
			continue
		case "pr_link": // no link at all
			want = "null"
		}
		if shown := fmt.Sprintf("%q:tftypes.String<%s>", row.attribute, want); !strings.Contains(c.State.String(), shown) {
			t.Errorf("no %s in %s: does apply in model.go use printable?", shown, c.State)
		}
	}
}
