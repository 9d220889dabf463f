// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"archive/zip"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-version"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// assertNoSecrets asserts that neither output nor disk hold a secret, and that the journal holds no prompt.
func (w *workingDir) assertNoSecrets(output string) {
	w.t.Helper()
	w.assertNone("output", output, w.secrets...)
	err := filepath.WalkDir(w.dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // some vanish meanwhile
			return nil
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		if plan, notZip := zip.NewReader(bytes.NewReader(text), int64(len(text))); notZip == nil {
			for _, file := range plan.File {
				part, err := fs.ReadFile(plan, file.Name)
				if err != nil {
					return err
				}
				w.assertNone(path+" "+file.Name, string(part), w.secrets...)
			}
		}
		w.assertNone(path, string(text), w.secrets...)
		if strings.Contains(path, journalFolder) {
			w.assertNone(path, string(text), canaryPrompt)
		}
		return nil
	})
	if err != nil {
		w.t.Error(err)
	}
}

func (w *workingDir) assertNone(where, text string, secrets ...string) {
	w.t.Helper()
	for _, secret := range secrets {
		if at := strings.Index(text, secret); at >= 0 {
			w.t.Errorf("%s is in %s: …%s…", secret, where, text[max(0, at-200):at+len(secret)])
		}
	}
}

// A log at TRACE, the output, the state, a saved plan and whatever else a run
// leaves behind hold no byte of the key and of a write-only prompt, both from
// ephemeral variables: not when it is sent, not as a message, and not after a run
// was killed. Every wait searches for them.
func TestSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	w := newWorkingDir(t, "")
	if cli.Version.LessThan(version.Must(version.NewVersion("1.11.0"))) {
		t.Skipf("write-only and ephemeral values need 1.11 or later, this is %s", cli)
	}
	w.secrets = append(w.secrets, canaryPrompt)
	w.writeFile("main.tf", strings.Replace(rootModule, "provider \"agent\" {", "provider \"agent\" {\n  admin_key = var.key", 1)+`
variable "key" {
  ephemeral = true
}
variable "prompt" {
  ephemeral = true
}
resource "agent_job" "test" {
  name      = "test"
  prompt_wo = var.prompt
}
`)
	set := func(prompt string) {
		w.env = []string{"TF_LOG=TRACE", "AGENT_ADMIN_KEY=", "TF_VAR_key=" + canaryKey, "TF_VAR_prompt=" + prompt}
	}
	for _, prompt := range []string{canaryPrompt, canaryPrompt + " more"} {
		set(prompt)
		w.run("plan -out=saved")
		harness.Contains(t, w.run("show -json saved"), "agent_job") // else the search proves nothing
		harness.Contains(t, w.run("apply saved"), "called the agent service")
	}
	w.sim.Inject(simulator.Fault{Kind: simulator.KindGet, Times: -1, Status: 403, Body: `{"error":"you sent ` + canaryKey + `"}`})
	harness.Contains(t, w.start("plan").wait(), "you sent (sensitive value)")
	w.sim.ClearFaults()

	set(canaryPrompt + " and more")
	w.sim.Inject(simulator.Fault{Kind: simulator.KindMessage, AfterEffect: true, Delay: time.Minute})
	p := w.start("apply")
	p.awaitPOSTs(1)
	p.signal(syscall.SIGKILL, true)
	p.wait()
	w.try("apply")
	if got := w.sim.Jobs()[0].Prompts; len(got) != 3 || !strings.HasPrefix(got[2], canaryPrompt) {
		t.Errorf("the service got %q, so the search proves nothing", got)
	}
	if records, err := filepath.Glob(filepath.Join(w.dir, journalFolder, "*", "*")); len(records) == 0 {
		t.Errorf("the journal is empty, so the search proves nothing: %v", err)
	}
}
