// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"context"
	"flag"
	"fmt"
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

	"github.com/hashicorp/go-version"

	// The plugin is built from it; without this Go would take the results of a run before a change of it.
	_ "github.com/agentjobs/terraform-provider-agent/internal/plugin"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

// canary is the key: it must turn up in no output.
const canary = "canary_2b7e"

// trials run configurations of examples/ on a real CLI with the real plugin.
type trials struct {
	cli    tfcli.CLI
	plugin tfcli.Plugin
	root   string
}

// installed is what TestMain found and built.
var installed trials

func newTrials(t *testing.T) trials {
	t.Helper()
	if installed.root == "" {
		t.Skip("TF_ACC is not set: it takes a Terraform-compatible CLI")
	}
	return installed
}

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	if os.Getenv("TF_ACC") == "" {
		return m.Run()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "demo")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		err = installed.install(ctx, dir)
	}
	if err == nil {
		// Most of the time they wait. The command line overrides this.
		err = flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func (s *trials) install(ctx context.Context, dir string) (err error) {
	if err = os.Setenv(tfcli.EnvCLI, os.Getenv("TF_ACC_TERRAFORM_PATH")); err != nil {
		return err
	}
	if s.cli, err = tfcli.Find(ctx, os.Stderr); err != nil {
		return err
	}
	if s.plugin, err = tfcli.InstallPlugin(ctx, dir); err != nil {
		return err
	}
	s.root, err = tfcli.RepositoryRoot(ctx)
	return err
}

// since skips a test on a CLI that is too old for it. "" is any version, "-" none.
func (s trials) since(t *testing.T, terraform, tofu string) {
	t.Helper()
	least := terraform
	if s.cli.Product == tfcli.Tofu {
		least = tofu
	}
	if least == "-" || least != "" && s.cli.Version.LessThan(version.Must(version.NewVersion(least))) {
		t.Skipf("needs Terraform %s or OpenTofu %s (- is none), this is %s %s", terraform, tofu, s.cli.Product, s.cli.Version)
	}
}

// read returns a file of examples/.
func (s trials) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.root, "examples", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// trial is a root module in a folder of its own, and a service for it.
type trial struct {
	trials
	service *simulator.Server
	dir     string
	config  string // of the CLI
	env     []string
}

// start starts a service whose jobs last that long, and makes an empty root module.
func (s trials) start(t *testing.T, jobs time.Duration) *trial {
	t.Helper()
	service := simulator.New(simulator.Options{Key: canary, Script: func(string, int) simulator.Script {
		return simulator.Script{Duration: jobs}
	}})
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	return &trial{
		trials: s, service: service, dir: t.TempDir(), config: s.plugin.OverrideConfig,
		env: []string{
			"AGENT_BASE_URL=" + server.URL, "AGENT_ADMIN_KEY=" + canary, "AGENT_PROJECT_ID=proj_123",
			"TF_VAR_agent_base_url=" + server.URL, "TF_VAR_agent_admin_key=" + canary,
			"TF_VAR_handbook_key=" + canary,
		},
	}
}

// write puts a file into the root module.
func (s *trial) write(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// try calls the CLI and returns what it shows, and whether it succeeded.
func (s *trial) try(t *testing.T, args ...string) (output string, ok bool) {
	t.Helper()
	cmd := s.cli.Command(t.Context(), s.config, append([]string{args[0], "-no-color"}, args[1:]...)...)
	cmd.Dir = s.dir
	cmd.Env = append(cmd.Env, s.env...)
	text, err := cmd.CombinedOutput()
	if strings.Contains(string(text), canary) {
		t.Errorf("%s shows the key:\n%s", args[0], text)
	}
	return string(text), err == nil
}

// call calls the CLI, which must succeed.
func (s *trial) call(t *testing.T, args ...string) string {
	t.Helper()
	text, ok := s.try(t, args...)
	if !ok {
		t.Fatalf("%s failed:\n%s", strings.Join(args, " "), text)
	}
	return text
}

// shell runs a script, in which terraform is the CLI, and returns what it shows.
func (s *trial) shell(t *testing.T, script string, env ...string) string {
	t.Helper()
	cmd := s.cli.Command(t.Context(), s.config, "-e", "-c", `terraform() { "$TEST_CLI" "$@"; }`+"\n"+script)
	cmd.Path, cmd.Args[0], cmd.Dir = "/bin/sh", "sh", s.dir
	cmd.Env = slices.Concat(cmd.Env, s.env, env, []string{"TEST_CLI=" + s.cli.Path})
	text, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(text), canary) {
		t.Fatalf("%v, or it shows the key\n%s\n%s", err, script, text)
	}
	return string(text)
}

// prompts are those of each job, in a fixed order.
func (s *trial) prompts() [][]string {
	var all [][]string
	for _, job := range s.service.Jobs() {
		all = append(all, job.Prompts)
	}
	slices.SortFunc(all, slices.Compare)
	return all
}

// filesIn lists the files below dir that end so, with slashes, as a clone has them.
func filesIn(t *testing.T, dir string, endings ...string) []string {
	t.Helper()
	var files []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == ".terraform" {
			return fs.SkipDir
		}
		if err == nil && slices.ContainsFunc(endings, func(ending string) bool { return strings.HasSuffix(path, ending) }) {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
