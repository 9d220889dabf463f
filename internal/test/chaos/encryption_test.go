// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-version"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

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
	if cli.Product != tfcli.Tofu || cli.Version.LessThan(version.Must(version.NewVersion("1.7.0"))) {
		t.Skipf("needs OpenTofu 1.7 or later, this is %s", cli)
	}
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
