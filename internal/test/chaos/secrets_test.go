// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// A log at TRACE, the output, the state, a saved plan and whatever else a run
// leaves behind hold no byte of the key, from the environment or ephemeral.
func TestKeyIsNowhere(t *testing.T) {
	for _, test := range []struct {
		name, variables string
		env             []string
	}{
		{"from the environment", "", nil},
		{"ephemeral", "variable \"key\" {\n  type      = string\n  sensitive = true\n  ephemeral = true\n}\n", []string{"AGENT_ADMIN_KEY=", "TF_VAR_key=" + canaryKey}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkingDir(t, simulator.Script{}, oneJob)
			if test.variables != "" {
				w.write(test.variables + oneJob)
				main := filepath.Join(w.dir, "main.tf")
				text, err := os.ReadFile(main)
				if err != nil {
					t.Fatal(err)
				}
				text = bytes.Replace(text, []byte("provider \"agent\" {"), []byte("provider \"agent\" {\n  admin_key = var.key"), 1)
				if err := os.WriteFile(main, text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			w.env = append(test.env, "TF_LOG=TRACE")
			for _, args := range []string{"plan -out=saved", "apply saved", "plan"} {
				log := w.run(args) // which searches it, and every file, for the key
				if saved := w.files(w.dir)[filepath.Join(w.dir, "saved")]; !strings.Contains(saved, "agent_job") {
					t.Error("the saved plan is not read, so the search proves nothing")
				}
				if args == "apply saved" && !strings.Contains(log, "called the agent service") {
					t.Error("the log does not show the calls, so the search proves nothing")
				}
			}
			w.sim.Inject(simulator.Fault{Kind: simulator.KindGet, Status: 403, Body: `{"error":"you sent ` + canaryKey + `"}`})
			if log := w.start("plan").wait(); !strings.Contains(log, "you sent (sensitive)") {
				t.Errorf("the service's words are not shown, so the search proves nothing:\n%s", log[max(0, len(log)-3000):])
			}
			w.onlyInstance()
		})
	}
}
