// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-version"

	"github.com/agentjobs/terraform-provider-agent/internal/plugin"
	agent "github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

const (
	root   = "../../.." // the repository
	canary = "canary_2b7e"

	badLink = "this gets a link that is refused"
)

// What TestMain found and installed: the tests use the two CLI configurations that `make install` writes.
var (
	cli                   tfcli.CLI
	withoutInit, withInit string
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "demo")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		err = install(ctx, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func install(ctx context.Context, dir string) (err error) {
	if cli, err = tfcli.ForTests(ctx); err != nil || cli.Path == "" {
		return err
	}
	err = errors.Join(
		os.Setenv("TF_LOG_SDK", "off"), // of providerWithSchema
		// Most of the time they wait. The command line overrides this.
		flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))),
	)
	if err != nil {
		return err
	}
	withoutInit, withInit = filepath.Join(dir, "override.tfrc"), filepath.Join(dir, "mirror.tfrc")
	if err = tfcli.InstallForUser(ctx, dir, io.Discard); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(io.Discard, "%p %p", plugin.Serve, agent.New) // else Go takes results of an earlier provider from its cache
	return nil
}

// trial is a root module in a folder of its own, and a service for it.
type trial struct {
	*testing.T

	service *simulator.Server
	dir     string
	config  string // of the CLI
	env     []string
}

// start starts a service whose jobs last that long, and makes an empty root module.
func start(t *testing.T, jobs time.Duration) *trial {
	t.Helper()
	if cli.Path == "" {
		t.Skip(tfcli.NoCLI)
	}
	for _, file := range []string{"main.go", ".goreleaser.yml"} { // else Go takes results of an earlier executable from its cache
		if _, err := os.Stat(filepath.Join(root, file)); err != nil {
			t.Fatal(err)
		}
	}
	service := simulator.New(simulator.Options{Key: canary, Script: func(prompt string, _ int) simulator.Script {
		script := simulator.Script{Duration: jobs}
		if prompt == badLink {
			script.Extra = map[string]any{"prLink": "https://github.com/example/docs/pull?a&b"}
		}
		return script
	}})
	server := httptest.NewServer(service)
	dir := t.TempDir()
	t.Cleanup(func() {
		server.Close()
		if files, err := filesWith(canary, os.DirFS(filepath.Dir(dir))); err != nil || len(files) > 0 { // all temporary folders of the test
			t.Errorf("%v, or the key is in %q", err, files)
		}
	})
	return &trial{T: t, service: service, dir: dir, config: withoutInit, env: []string{
		"AGENT_BASE_URL=" + server.URL, "AGENT_ADMIN_KEY=" + canary, "AGENT_PROJECT_ID=proj_123",
		"TF_VAR_agent_base_url=" + server.URL, "TF_VAR_agent_admin_key=" + canary, "TF_VAR_handbook_key=" + canary,
	}}
}

// needs skips a test on a CLI that is too old for it. "" is any version, "-" none.
func needs(t *testing.T, terraform, tofu string) {
	t.Helper()
	least := map[string]string{tfcli.Terraform: terraform, tfcli.Tofu: tofu}[cli.Product]
	if least == "-" || least != "" && cli.Version.LessThan(version.Must(version.NewVersion(least))) {
		t.Skipf("needs Terraform %s or OpenTofu %s (- is none), this is %s", terraform, tofu, cli.Name())
	}
}

// read returns a file of examples/.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "examples", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// write puts a file into the root module.
func (s *trial) write(name, text string) {
	s.Helper()
	file := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		s.Fatal(err)
	}
}

// try calls the CLI and returns what it shows, and whether it succeeded.
func (s *trial) try(args ...string) (output string, ok bool) {
	s.Helper()
	cmd := cli.Command(s.Context(), s.config, slices.Insert(args, 1, "-no-color")...)
	cmd.Dir, cmd.Env = s.dir, append(cmd.Env, s.env...)
	text, err := cmd.CombinedOutput()
	if bytes.Contains(text, []byte(canary)) {
		s.Errorf("%s shows the key:\n%s", args[0], text)
	}
	return string(text), err == nil
}

// call calls the CLI, which must succeed.
func (s *trial) call(args ...string) string {
	s.Helper()
	text, ok := s.try(args...)
	if !ok {
		s.Fatalf("%s failed:\n%s", strings.Join(args, " "), text)
	}
	return text
}

// apply applies the root module. In the end, a plan finds nothing to do.
func (s *trial) apply() {
	s.Helper()
	s.call("apply", "-auto-approve", "-parallelism=1")
	s.call("plan", "-detailed-exitcode", "-parallelism=1")
}

// shell runs a script, in which terraform is the CLI, and returns what it shows.
func (s *trial) shell(script string) string {
	s.Helper()
	if runtime.GOOS == "windows" {
		s.Skip("it is for a shell")
	}
	cmd := cli.Command(s.Context(), s.config, "-e", "-c", `terraform() { "$TEST_CLI" "$@"; }`+"\n"+script)
	cmd.Path, cmd.Args[0], cmd.Dir = "/bin/sh", "sh", s.dir
	cmd.Env = slices.Concat(cmd.Env, s.env, []string{"TEST_CLI=" + cli.Path})
	text, err := cmd.CombinedOutput()
	if err != nil || bytes.Contains(text, []byte(canary)) {
		s.Fatalf("%v, or it shows the key\n%s\n%s", err, script, text)
	}
	return string(text)
}

// expect compares the prompts of each job, in any order. That of another project begins with its name.
func (s *trial) expect(want ...[]string) {
	s.Helper()
	var got [][]string
	for _, job := range s.service.Jobs() {
		if job.Project != "proj_123" {
			job.Prompts[0] = job.Project + ": " + job.Prompts[0]
		}
		got = append(got, job.Prompts)
	}
	slices.SortFunc(got, slices.Compare)
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("prompts of the jobs (-want +got):\n%s", diff)
	}
}

// filesIn lists the files below a folder that end so, with slashes, as a clone has them.
func filesIn(t *testing.T, dir string, endings ...string) (files []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == ".terraform" {
			return fs.SkipDir
		}
		if slices.ContainsFunc(endings, func(ending string) bool { return strings.HasSuffix(path, ending) }) {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
