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
)

// sixtyBytes is the input of the floor's resources, as long as a prompt of ours.
const sixtyBytes = "Add a quickstart for the Python SDK, please [simulate: 3.0s]"

// result is one run of the CLI.
type result struct {
	wall time.Duration
	cpu  time.Duration // of the provider's processes
	peak int64         // bytes, the largest resident set of a provider's process
}

// module writes a root module with the provider and the given resources.
func (l *lab) module(resources string) string {
	return l.write("terraform {\n  required_providers {\n    agent = { source = \"agentjobs/agent\" }\n  }\n}\nprovider \"agent\" {}\n" + resources)
}

// floorModule writes a root module without the provider.
func (l *lab) floorModule(resources string) string { return l.write(resources) }

func (l *lab) write(text string) string {
	dir, err := os.MkdirTemp(l.dir, "module")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "main.tf"), []byte(text), 0o600)
	}
	if err != nil {
		panic(err) // no room for a temporary file
	}
	return dir
}

// command runs the CLI in a folder and watches the provider's processes.
func (l *lab) command(ctx context.Context, dir string, args ...string) (result, error) {
	cmd := l.cli.Command(ctx, l.plugin.OverrideConfig, args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, l.service.env()...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	watched := watch(ctx, l.plugin.Executable)
	start := time.Now()
	err := cmd.Run()
	r := result{wall: time.Since(start)}
	r.cpu, r.peak = watched()
	if err != nil {
		text := output.String()
		return r, fmt.Errorf("%v: %w\n%s", args, err, text[max(0, len(text)-2000):])
	}
	return r, nil
}
