// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

// A CLI uses the process that "go run . -debug" starts.
func TestDebug(t *testing.T) {
	t.Parallel()
	w := newWorkingDir(t, simulator.Script{}, oneJob)
	debugged := exec.CommandContext(t.Context(), provider.Executable, "-debug")
	debugged.Env = append(os.Environ(), "AGENT_BASE_URL="+w.url, "AGENT_ADMIN_KEY="+canaryKey, "AGENT_PROJECT_ID="+project)
	stdout, err := debugged.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := debugged.Start(); err != nil {
		t.Fatal(err)
	}
	attach := ""
	for lines := bufio.NewScanner(stdout); attach == "" && lines.Scan(); {
		if _, line, ok := strings.Cut(lines.Text(), "TF_REATTACH_PROVIDERS='"); ok {
			attach = "TF_REATTACH_PROVIDERS=" + strings.TrimSuffix(line, "'")
		}
	}
	if cli.Product == tfcli.Tofu {
		attach = strings.ReplaceAll(attach, "registry.terraform.io", "registry.opentofu.org")
	}
	w.env = []string{attach}
	p := w.start("apply")
	output := p.wait()
	_ = debugged.Process.Signal(os.Interrupt)
	if err := debugged.Wait(); err != nil || !p.ok() {
		t.Errorf("attached by %q, it ended with %v:\n%s", attach, err, output)
	}
	w.posts(1, 0)
	for _, r := range w.sim.Requests() {
		if agent := r.Header.Get("User-Agent"); !strings.HasPrefix(agent, "terraform-provider-agent/0.999.0 (+terraform ") {
			t.Errorf("User-Agent: %q", agent)
		}
	}
}
