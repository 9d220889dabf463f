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
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-version"

	"github.com/agentjobs/terraform-provider-agent/internal/plugin"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

const (
	root   = "../../.." // the repository
	canary = harness.CanaryKey
)

// What TestMain found and installed: the tests use the two CLI configurations that `make install` names.
var (
	cli                   tfcli.CLI
	installed             bytes.Buffer
	withoutInit, withInit string
)

func TestMain(m *testing.M) {
	if os.Getenv("TF_ACC") != "" {
		dir, err := os.MkdirTemp("", "demo")
		if err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		if err := install(dir); err != nil {
			panic(err)
		}
	}
	m.Run()
}

func install(dir string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	err = errors.Join(
		os.Setenv(tfcli.EnvCLI, os.Getenv("TF_ACC_TERRAFORM_PATH")),
		os.Setenv("TF_LOG_SDK", "off"), // of providerWithSchema
		// Most of the time they wait. The command line overrides this.
		flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))),
	)
	if err != nil {
		return err
	}
	if cli, err = tfcli.Find(ctx, os.Stderr); err != nil {
		return err
	}
	if err = tfcli.InstallForUser(ctx, dir, &installed); err != nil {
		return err
	}
	printed := regexp.MustCompile(`(?ms)^export TF_CLI_CONFIG_FILE='(.*?)'$.*?^(provider_installation \{\n.*?^\}\n)`)
	for _, match := range printed.FindAllStringSubmatch(installed.String(), -1) {
		withoutInit, withInit = withInit, match[1]
		if text, _ := os.ReadFile(withInit); string(text) != match[2] {
			return fmt.Errorf("%s does not hold what is printed to copy:\n%s", withInit, match[2])
		}
	}
	_, _ = fmt.Fprintf(io.Discard, "%p", plugin.Serve) // else Go would take the results of a run before a change of the provider from its cache
	return nil
}

// trial is a root module in a folder of its own, and a service for it.
type trial struct {
	*testing.T

	service *harness.Service
	dir     string
	config  string // of the CLI
	env     []string
}

// start starts a service whose jobs last that long, and makes an empty root module.
func start(t *testing.T, jobs time.Duration) *trial {
	t.Helper()
	if cli.Path == "" {
		t.Skip("TF_ACC is not set: it takes a Terraform-compatible CLI")
	}
	service, dir := harness.NewService(t, harness.Always(simulator.Script{Duration: jobs})), t.TempDir()
	t.Cleanup(func() {
		// States, journals, logs and plans in all temporary folders of the test.
		if files, err := filesWith(os.DirFS(filepath.Dir(dir)), canary); err != nil || len(files) > 0 {
			t.Errorf("the key is in %q (%v)", files, err)
		}
	})
	return &trial{T: t, service: service, dir: dir, config: withoutInit, env: []string{
		"AGENT_BASE_URL=" + service.URL, "AGENT_ADMIN_KEY=" + canary, "AGENT_PROJECT_ID=proj_123",
		"TF_VAR_agent_base_url=" + service.URL, "TF_VAR_agent_admin_key=" + canary, "TF_VAR_handbook_key=" + canary,
		`TF_VAR_projects={"a" = "proj_1", "b" = "proj_2"}`,
	}}
}

// features are what some CLIs lack: a configuration that has the text needs these versions, at least; "-" is none.
var features = []struct{ text, terraform, tofu string }{
	{"ephemeral = true", "1.10.0", "1.11.0"},
	{"prompt_wo", "1.11.0", "1.11.0"},
	{"identity =", "1.12.0", "1.12.0"},
	{`action "`, "1.14.0", "-"},
	{`list "`, "1.14.0", "-"},
	{"after_destroy", "1.16.0", "-"},
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

// write puts a file into the root module, and skips a test whose CLI is too old for it.
func (s *trial) write(name, text string) {
	s.Helper()
	for _, f := range features {
		least := map[string]string{tfcli.Terraform: f.terraform, tfcli.Tofu: f.tofu}[cli.Product]
		if strings.Contains(text, f.text) && (least == "-" || cli.Version.LessThan(version.Must(version.NewVersion(least)))) {
			s.Skipf("%s needs Terraform %s or OpenTofu %s (- is none), this is %s", f.text, f.terraform, f.tofu, cli.Name())
		}
	}
	file := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		s.Fatal(err)
	}
}

// written is a file of the root module.
func (s *trial) written(name string) string {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.Fatal(err)
	}
	return string(text)
}

// try calls the CLI and returns what it shows, and whether it succeeded.
func (s *trial) try(args ...string) (output string, ok bool) {
	s.Helper()
	cmd := cli.Command(s.Context(), s.config, slices.Insert(args, 1, "-no-color")...)
	cmd.Env = append(cmd.Env, s.env...)
	return s.run(cmd)
}

// run runs a command in the root module and returns what it shows, and whether it succeeded.
func (s *trial) run(cmd *exec.Cmd) (output string, ok bool) {
	s.Helper()
	cmd.Dir = s.dir
	text, err := cmd.CombinedOutput()
	if bytes.Contains(text, []byte(canary)) {
		s.Errorf("%s shows the key:\n%s", cmd, text)
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
	cmd.Path, cmd.Args[0] = "/bin/sh", "sh"
	cmd.Env = slices.Concat(cmd.Env, s.env, []string{"TEST_CLI=" + cli.Path})
	text, ok := s.run(cmd)
	if !ok {
		s.Fatalf("%s\nfailed:\n%s", script, text)
	}
	return text
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
