// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

// agent is the beginning of a configuration with the provider.
const agent = "terraform {\n  required_providers {\n    agent = { source = \"" + tfcli.Source + "\" }\n  }\n}\nprovider \"agent\" {}\n"

// result is one run of the CLI.
type result struct {
	wall time.Duration
	cpu  time.Duration // of the provider's processes
	peak int64         // bytes, the largest resident set of a provider's process
}

// module writes a root module.
func (l *lab) module(text string) string {
	dir, err := os.MkdirTemp(l.dir, "module")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "main.tf"), []byte(text), 0o600)
	}
	if err != nil && l.err == nil {
		l.err = err
	}
	return dir
}

// command runs the CLI in a folder and watches the provider's processes.
func (l *lab) command(ctx context.Context, dir string, env []string, args ...string) (r result) {
	if l.err != nil {
		return r
	}
	cmd := l.cli.Command(ctx, l.plugin.OverrideConfig, args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, env...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	watched := watch(ctx, l.plugin.Executable)
	start := time.Now()
	err := cmd.Run()
	r.wall = time.Since(start)
	r.cpu, r.peak = watched()
	if err != nil {
		text := output.String()
		l.err = fmt.Errorf("%v: %w\n%s", args, err, text[max(0, len(text)-2000):])
	}
	return r
}
