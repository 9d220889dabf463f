// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/tfcli"
)

// install is what a user does with a released version, on one CLI.
type install struct {
	cli     tfcli.CLI
	version string
	dir     string   // the root module, empty before
	config  string   // CLI configuration file that names a mirror
	env     []string // for the CLI, beside what points at the service
}

// initAndApply installs the provider and runs one job with it.
func (i install) initAndApply(ctx context.Context) error {
	creates := 1
	resource := `resource "agent_job" "check" {
  prompt = "Is the release any good?"
`
	if i.cli.HasActions() {
		creates = 2
		resource += `
  lifecycle {
    action_trigger {
      events  = [after_create]
      actions = [action.agent_start_job.check]
    }
  }
`
	}
	resource += "}\n"
	if i.cli.HasActions() {
		resource += `
action "agent_start_job" "check" {
  config {
    prompt = "And its actions?"
  }
}
`
	}
	text := fmt.Sprintf("terraform {\n  required_providers {\n    agent = {\n      source  = %q\n      version = %q\n    }\n  }\n}\n\n%s", tfcli.Source, i.version, resource)
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
	service := simulator.New(simulator.Options{Key: key, Script: func(string, string, int) simulator.Script { return simulator.Script{} }})
	url, stop, err := serve(ctx, service, nil)
	if err != nil {
		return err
	}
	i.env = append(i.env, "AGENT_BASE_URL="+url, "AGENT_ADMIN_KEY="+key, "AGENT_PROJECT_ID=proj_check")
	output, err := i.run(ctx, "apply", "-auto-approve", "-input=false", "-no-color")
	if err := errors.Join(err, stop()); err != nil {
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
	return i.checkState()
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

func (i install) checkState() error {
	text, err := os.ReadFile(filepath.Join(i.dir, "terraform.tfstate"))
	if err != nil {
		return err
	}
	var state struct {
		Resources []struct {
			Instances []struct {
				Attributes struct {
					Status string
					PRLink string `json:"pr_link"`
				}
			}
		}
	}
	if err := json.Unmarshal(text, &state); err != nil {
		return err
	}
	if len(state.Resources) != 1 || len(state.Resources[0].Instances) != 1 {
		return fmt.Errorf("the state holds %+v, want one job", state)
	}
	if job := state.Resources[0].Instances[0].Attributes; job.Status != "completed" || job.PRLink == "" {
		return fmt.Errorf("the state holds %+v, want a completed job with its pull request", job)
	}
	return nil
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

// call runs a command and returns all that it prints; a failure tells it.
func call(cmd *exec.Cmd) (string, error) {
	text, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, text)
	}
	return string(text), err
}
