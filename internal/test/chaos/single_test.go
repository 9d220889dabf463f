// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// A plugin whose CLI is gone does not live on for a refresh. Red without: cliGone.
func TestX04_CLI_gone_while_a_job_is_read(t *testing.T) {
	t.Parallel()
	w := newWorkingDir(t, simulator.Script{}, use("test", canaryPrompt))
	w.run("apply")
	sockets, err := os.MkdirTemp("", "x04") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(sockets) }()
	w.env = []string{"TMPDIR=" + sockets}
	read := w.sim.Counts().Get
	w.sim.Inject(simulator.Fault{Kind: simulator.KindGet, Delay: time.Minute})
	p := w.start("plan")
	p.awaits("the job is read", func() bool { return w.sim.Counts().Get > read })
	files, err := filepath.Glob(filepath.Join(sockets, "plugin*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("sockets: %q, %v", files, err)
	}
	p.signal(syscall.SIGKILL)
	w.until("the plugin has ended", func() bool {
		conn, err := net.Dial("unix", files[0])
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
}

// A log at TRACE, the output, the state, a saved plan and whatever else a run
// leaves behind hold no byte of the key and of a write-only prompt, both from
// ephemeral variables: not when it is sent, not as a message, and not after a run
// was killed. Every wait searches for them.
func TestSecretsAreNowhere(t *testing.T) {
	needsWriteOnly(t)
	t.Parallel()
	w := newWorkingDir(t, quick, "")
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
		harness.Contains(t, w.files(w.dir)[filepath.Join(w.dir, "saved", "tfplan")], "agent_job") // else the search proves nothing
		harness.Contains(t, w.run("apply saved"), "called the agent service")
	}
	w.sim.Inject(simulator.Fault{Kind: simulator.KindGet, Times: -1, Status: 403, Body: `{"error":"you sent ` + canaryKey + `"}`})
	harness.Contains(t, w.start("plan").wait(), "you sent (sensitive value)")
	w.sim.ClearFaults()

	set(canaryPrompt + " and more")
	w.sim.Inject(simulator.Fault{Kind: simulator.KindMessage, AfterEffect: true, Delay: time.Minute})
	p := w.start("apply")
	p.awaitPOSTs(1)
	p.signalGroup(syscall.SIGKILL)
	p.wait()
	w.try("apply")
	if got := w.sim.Jobs()[0].Prompts; len(got) != 3 || !strings.HasPrefix(got[2], canaryPrompt) {
		t.Errorf("the service got %q, so the search proves nothing", got)
	}
}

// What a cloud's library starts to get credentials has neither the key nor a variable of the configuration. Red without: TakeEnvironment
// in main.
func TestChildrenHaveNoSecrets(t *testing.T) {
	t.Parallel()
	w, bin := newWorkingDir(t, quick, use("test", "write")), t.TempDir()
	child := filepath.Join(bin, "az")
	if err := os.WriteFile(child, []byte("#!/bin/sh\nenv >> \"$0.env\"\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.journal = "azblob://devstate/ci-state?state=a"
	w.env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "ARM_USE_CLI=true", "TF_VAR_token=canary"}
	if text, ok := w.try("apply"); ok {
		t.Errorf("applied without credentials:\n%s", text)
	}
	got, err := os.ReadFile(child + ".env")
	if text := string(got); err != nil || !strings.Contains(text, "PATH=") || strings.Contains(text, "AGENT_") || strings.Contains(text, "TF_VAR_") {
		t.Errorf("%v\n%s", err, text)
	}
}
