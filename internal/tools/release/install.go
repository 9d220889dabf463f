// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

// install is what a user does with a released version, on one CLI.
type install struct {
	cli     tfcli.CLI
	version string
	dir     string   // the root module, empty before
	config  string   // CLI configuration file that names a mirror
	env     []string // for the CLI, beside what points at the service
}

// initAndApply installs the provider and runs one job with it, and another as
// an action where the CLI has actions.
func (i install) initAndApply(ctx context.Context) error {
	creates, trigger, action := 1, "", ""
	if i.cli.HasActions() {
		creates = 2
		trigger = `
  lifecycle {
    action_trigger {
      events  = [after_create]
      actions = [action.agent_start_job.check]
    }
  }
`
		action = `
action "agent_start_job" "check" {
  config {
    prompt = "And its actions?"
  }
}
`
	}
	text := fmt.Sprintf(`terraform {
  required_providers {
    agent = {
      source  = %q
      version = %q
    }
  }
}

resource "agent_job" "check" {
  prompt = "Is the release any good?"
%s}
%s
output "completed" {
  value = agent_job.check.status == "completed" && agent_job.check.pr_link != null
}
`, tfcli.Source, i.version, trigger, action)
	if err := os.WriteFile(filepath.Join(i.dir, "main.tf"), []byte(text), 0o600); err != nil {
		return err
	}

	if _, err := i.run(ctx, "init", "-input=false", "-no-color"); err != nil {
		return err
	}
	if err := i.checkVersion(ctx); err != nil {
		return err
	}

	const key = "canary_release_check"
	service := simulator.New(simulator.Options{Key: key, Script: func(string, int) simulator.Script { return simulator.Script{} }})
	server := httptest.NewServer(service)
	defer server.Close()
	i.env = append(i.env, "AGENT_BASE_URL="+server.URL, "AGENT_ADMIN_KEY="+key, "AGENT_PROJECT_ID=proj_check")
	output, err := i.run(ctx, "apply", "-auto-approve", "-input=false", "-no-color")
	if err != nil {
		return err
	}
	if strings.Contains(output, key) {
		return errors.New("apply printed the key")
	}
	if strings.Contains(output, "development overrides") {
		return errors.New("apply used a dev override")
	}
	if got := service.Counts(); got.Create != creates || got.Message != 0 {
		return fmt.Errorf("the service got %d creates and %d messages, want %d and none", got.Create, got.Message, creates)
	}
	// The executable says which version it is: the release build sets it.
	for _, request := range service.Requests() {
		if agent := request.Header.Get("User-Agent"); !strings.HasPrefix(agent, project+"/"+i.version+" ") {
			return fmt.Errorf("a request was sent by %q, want version %s", agent, i.version)
		}
	}
	completed, err := i.run(ctx, "output", "-json", "completed")
	if err == nil && strings.TrimSpace(completed) != "true" {
		err = errors.New("the state holds no completed job with its pull request")
	}
	return err
}

// checkVersion asks the CLI which version it has installed.
func (i install) checkVersion(ctx context.Context) error {
	text, err := i.run(ctx, "version", "-json")
	if err != nil {
		return err
	}
	var answer struct {
		Selections map[string]string `json:"provider_selections"`
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return err
	}
	for address, version := range answer.Selections {
		if strings.HasSuffix(address, "/"+tfcli.Source) && version == i.version {
			return nil
		}
	}
	return fmt.Errorf("%s has selected %v", i.cli, answer.Selections)
}

// lock locks the provider for several platforms against the network mirror at
// url, and installs again with a lock file that may not change. It returns how
// many platforms these were.
func (i install) lock(ctx context.Context, url string) (int, error) {
	args := []string{"providers", "lock", "-no-color", "-net-mirror=" + url}
	platforms := slices.Compact(slices.Sorted(slices.Values([]string{
		"darwin_arm64", "freebsd_amd64", "linux_arm64", "windows_amd64", runtime.GOOS + "_" + runtime.GOARCH,
	})))
	for _, platform := range platforms {
		args = append(args, "-platform="+platform)
	}
	if _, err := i.run(ctx, args...); err != nil {
		return 0, err
	}
	text, err := os.ReadFile(filepath.Join(i.dir, ".terraform.lock.hcl"))
	if err != nil {
		return 0, err
	}
	if got := strings.Count(string(text), `"h1:`); got != len(platforms) {
		return 0, fmt.Errorf("the lock file has %d hashes of packages, want %d:\n%s", got, len(platforms), text)
	}
	if err := os.RemoveAll(filepath.Join(i.dir, ".terraform")); err != nil {
		return 0, err
	}
	_, err = i.run(ctx, "init", "-input=false", "-no-color", "-lockfile=readonly")
	return len(platforms), err
}

func (i install) run(ctx context.Context, args ...string) (string, error) {
	cmd := i.cli.Command(ctx, i.config, args...)
	cmd.Dir = i.dir
	cmd.Env = append(cmd.Env, i.env...)
	return call(cmd)
}
