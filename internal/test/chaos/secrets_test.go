// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
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
				w.writeFile("main.tf", strings.Replace(test.variables+rootModule+oneJob, "provider \"agent\" {", "provider \"agent\" {\n  admin_key = var.key", 1))
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

// A write-only prompt from a file or an ephemeral variable is nowhere either:
// not when it is sent, not as a message, and not after a run was killed.
func TestPromptWOIsNowhere(t *testing.T) {
	const canary = "canary-write-only-3c1e"
	for name, prompt := range map[string]string{"file": "file(%q)", "ephemeral": "trimprefix(var.prompt, %q)"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkingDir(t, quick, "")
			file := filepath.Join(t.TempDir(), "prompt.md")
			w.write(fmt.Sprintf("variable \"prompt\" {\n  type      = string\n  ephemeral = true\n}\n"+
				"resource \"agent_job\" \"test\" {\n  prompt_wo = "+prompt+"\n}\n", file))
			set := func(text string) {
				w.env = []string{"TF_LOG=TRACE", "TF_VAR_prompt=" + text}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			search := func(output string) {
				t.Helper()
				all := w.files(w.dir)
				all["output"] = output
				for place, text := range all {
					if at := strings.Index(text, canary); at >= 0 {
						t.Errorf("the prompt is in %s: …%s…", place, text[max(0, at-200):at+len(canary)])
					}
				}
			}
			set(canary)
			search(w.run("plan -out=saved"))
			search(w.run("apply saved"))
			set(canary + " more")
			search(w.run("plan -out=saved"))
			search(w.run("apply saved"))
			set(canary + " and more")
			w.sim.Inject(simulator.Fault{Kind: simulator.KindMessage, AfterEffect: true, Delay: time.Minute})
			p := w.start("apply")
			p.awaitPOSTs(1)
			p.signalGroup(syscall.SIGKILL)
			search(p.wait())
			search(w.start("apply").wait())
			if got := w.sim.Jobs()[0].Prompts; len(got) != 3 || !strings.HasPrefix(got[2], canary) {
				t.Errorf("the service got %q, so the search proves nothing", got)
			}
		})
	}
}

const encryption = `
key_provider "pbkdf2" "team" {
  passphrase = "correct-horse-battery-staple"
}
method "aes_gcm" "team" {
  keys = key_provider.pbkdf2.team
}
state {
  method   = method.aes_gcm.team
  enforced = true
}
plan {
  method   = method.aes_gcm.team
  enforced = true
}
`

// Where OpenTofu encrypts the state and the plan, nothing of ours tells what
// they would, and an apply that was killed is taken up all the same.
func TestEncryptedState(t *testing.T) {
	if cli.Product != tfcli.Tofu {
		t.Skipf("needs OpenTofu 1.7 or later, this is %s", cli)
	}
	needsVersion(t, "1.7.0")
	w := newWorkingDir(t, simulator.Script{Duration: time.Hour}, "variable \"prompt\" {}\nresource \"agent_job\" \"test\" {\n  prompt = var.prompt\n}\n")
	w.env = []string{"TF_ENCRYPTION=" + encryption, "TF_VAR_prompt=" + canaryPrompt}
	nowhere := func(secret string) {
		t.Helper()
		for name, text := range w.files(w.dir) {
			if strings.Contains(text, secret) {
				t.Errorf("%q is in %s", secret, name)
			}
		}
	}
	w.run("plan -out=saved")
	p := w.start("apply saved")
	w.until("the job is polled", func() bool { return w.sim.Counts().Get > 0 })
	p.signalGroup(syscall.SIGKILL)
	p.wait()
	if len(w.entries()) == 0 {
		t.Error("no journal is left, so the search proves nothing")
	}
	nowhere(canaryPrompt)

	id := w.sim.Jobs()[0].ID
	w.sim.SetStatus(id, "completed")
	if output := w.run("apply saved"); !strings.Contains(output, createTakenOver) {
		t.Errorf("the job was not taken over:\n%s", output)
	}
	w.run("plan -detailed-exitcode")
	w.posts(1, 0)
	nowhere(canaryPrompt)
	nowhere(id)
}
