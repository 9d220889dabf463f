// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

// Command compare plays the same faults with this provider, with two scripts around curl and
// with a provider for any REST API, against the simulated service. It prints how many
// jobs and messages each led to, as a table in Markdown.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/source"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

const restful = "github.com/magodo/terraform-provider-restful"

// tool is a column of the table.
type tool struct {
	name, file string   // the file in pipelines
	env        []string // TF_CLI_CONFIG_FILE
	command    []string
	loses      string // what is lost with a runner; the state never is
	skipped    error  // why it is not run
}

// fault is a row of the table: a pipeline runs twice, and the first run hits the fault.
type fault struct {
	name   string
	inject simulator.Fault
	signal syscall.Signal // sent to the first run while it waits; 0: none
	second string         // the prompt of the second run, if it is another
	fails  bool           // the first job fails
	loses  bool           // the state, after the first run
}

func faults() []fault {
	const create, get = simulator.KindCreate, simulator.KindGet
	const edited = "Show the async client too"
	none := simulator.Fault{Kind: simulator.KindOther}
	return []fault{
		{"none, the pipeline runs again", none, 0, "", false, false},
		{"504, job started", simulator.Fault{Kind: create, AfterEffect: true, Status: 504}, 0, "", false, false},
		{"504, no job started", simulator.Fault{Kind: create, Status: 504}, 0, "", false, false},
		{"connection lost, job started", simulator.Fault{Kind: create, AfterEffect: true, Drop: true}, 0, "", false, false},
		{"connection lost, no job started", simulator.Fault{Kind: create, Drop: true}, 0, "", false, false},
		{"503 to a poll", simulator.Fault{Kind: get, Skip: 1, Status: 503}, 0, "", false, false},
		{"runner killed", none, syscall.SIGKILL, "", false, false},
		{"Ctrl-C", none, syscall.SIGINT, "", false, false},
		{"the job fails, the pipeline runs again", none, 0, "", true, false},
		{"none, the prompt changes", none, 0, edited, false, false},
		{"504, job started, then the prompt changes", simulator.Fault{Kind: create, AfterEffect: true, Status: 504}, 0, edited, false, false},
		{"none, the state is lost", none, 0, "", false, true},
	}
}

// cell is one tool that hits one fault.
type cell struct {
	tool

	dir     string
	service *simulator.Server
	url     string
	log     io.Writer
}

// play runs the pipeline twice, with the state of the first run, and says what the service
// then has. Only a second run that fails is an outcome: the first one fails in most rows.
func play(ctx context.Context, t tool, f fault, log io.Writer) (outcome string, err error) {
	dir, err := os.MkdirTemp("", "agent-compare-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	text, err := os.ReadFile(filepath.Join("internal", "tools", "compare", "pipelines", t.file))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, t.file), text, 0o600)
	}
	if err != nil {
		return "", err
	}
	var started atomic.Bool
	service := simulator.New(simulator.Options{Key: "canary_9d41", Script: func(string, int) simulator.Script {
		script := simulator.Script{Duration: 4 * time.Second}
		if !started.Swap(true) && f.fails {
			script.Status = "failed"
		}
		return script
	}})
	server := httptest.NewServer(service)
	defer server.Close()
	service.Inject(f.inject)
	c := cell{t, dir, service, server.URL, log}
	const prompt = "Add a quickstart for the Python SDK"
	_, err = c.run(ctx, prompt, f.signal)
	if err == nil && t.loses != "" {
		err = os.RemoveAll(filepath.Join(dir, t.loses))
	}
	if err == nil && f.loses {
		err = os.RemoveAll(filepath.Join(dir, "terraform.tfstate"))
	}
	if err != nil {
		return "", err
	}
	ok, err := c.run(ctx, cmp.Or(f.second, prompt), 0)
	return describe(service.Jobs(), ok), err
}

// run runs the pipeline once and reports whether it succeeded. The error says that it could
// not be played.
func (c cell) run(ctx context.Context, prompt string, signal syscall.Signal) (ok bool, err error) {
	cmd := exec.CommandContext(ctx, c.command[0], c.command[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = c.dir, c.log, c.log, time.Minute
	cmd.Env = slices.Concat(slices.DeleteFunc(os.Environ(), tfcli.IsForeign), c.env, []string{
		"AGENT_BASE_URL=" + c.url, "AGENT_ADMIN_KEY=canary_9d41", "AGENT_PROJECT_ID=proj",
		"TF_VAR_base_url=" + c.url, "TF_VAR_key=canary_9d41", "TF_VAR_prompt=" + prompt, "CHECKPOINT_DISABLE=1",
	})
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the signal reaches its children too
	if err := cmd.Start(); err != nil {
		return false, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for signal != 0 && c.service.Counts().Get < 2 { // the first GET may belong to the create, before the wait
		select {
		case err := <-ended:
			return false, fmt.Errorf("%s ended before it waited for the job: %w", c.name, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	if signal != 0 {
		err = syscall.Kill(-cmd.Process.Pid, signal)
	}
	return <-ended == nil, err
}

// describe counts jobs and messages.
func describe(jobs []simulator.Job, ok bool) string {
	messages := 0
	for _, job := range jobs {
		messages += len(job.Prompts) - 1
	}
	text := strconv.Itoa(len(jobs))
	if messages > 0 {
		text += fmt.Sprintf("+%d", messages)
	}
	if !ok {
		text += ", error"
	}
	return text
}

// tools builds what is compared.
func tools(ctx context.Context, cli tfcli.CLI, dir string) ([]tool, error) {
	plugin, err := tfcli.InstallPlugin(ctx, dir)
	apply := []string{cli.Path, "apply", "-auto-approve", "-no-color", "-input=false"}
	ours := tool{"this provider", "agent.tf", []string{"TF_CLI_CONFIG_FILE=" + plugin.OverrideConfig}, apply, "", nil}
	lost := ours
	lost.name, lost.loses = "without its journal", ".agent-journal"

	version, failed := source.Output(exec.CommandContext(ctx, "curl", "--version"))
	words := append(strings.Fields(version), "", "")
	script := tool{"`curl --retry` " + words[1], "curl.sh", nil, []string{"bash", "curl.sh"}, "", failed}
	stored := script
	stored.name, stored.file, stored.command = "`curl` with a stored id", "stored.sh", []string{"bash", "stored.sh"}

	module, config := filepath.Join("internal", "tools", "compare", "restful"), filepath.Join(dir, "restful.tfrc")
	_, failed = source.Go(ctx, module, "build", "-o", filepath.Join(dir, "restful", "terraform-provider-restful"), restful)
	version, _ = source.Go(ctx, module, "list", "-m", "-f", "{{.Version}}", restful)
	generic := tool{"magodo/restful " + version, "restful.tf", []string{"TF_CLI_CONFIG_FILE=" + config}, apply, "", failed}
	waits := generic
	waits.name, waits.file = "restful, which waits in a second resource", "restful_wait.tf"
	return []tool{ours, lost, script, stored, generic, waits}, errors.Join(err, os.WriteFile(config, fmt.Appendf(nil,
		"provider_installation {\n  dev_overrides {\n    \"registry.terraform.io/magodo/restful\" = %[1]q\n    \"registry.opentofu.org/magodo/restful\" = %[1]q\n  }\n}\n",
		filepath.Join(dir, "restful")), 0o600))
}

func run(ctx context.Context, verbose bool) (err error) {
	dir, err := os.MkdirTemp("", "agent-compare-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cli, err := tfcli.Find(ctx, os.Stderr)
	if err != nil {
		return err
	}
	columns, err := tools(ctx, cli, dir)
	if err != nil {
		return err
	}
	fmt.Print("| fault |")
	for _, t := range columns {
		fmt.Printf(" %s |", t.name)
	}
	fmt.Println("\n|---|" + strings.Repeat("---|", len(columns)))
	for _, f := range faults() {
		fmt.Printf("| %s |", f.name)
		outcomes, logs, errs := make([]string, len(columns)), make([]bytes.Buffer, len(columns)), make([]error, len(columns))
		var row sync.WaitGroup // all at once, because most of the time they wait
		for i, t := range columns {
			if outcomes[i] = "**not run**"; t.skipped == nil {
				row.Go(func() { outcomes[i], errs[i] = play(ctx, t, f, &logs[i]) })
			}
		}
		row.Wait()
		for i, t := range columns {
			if verbose {
				fmt.Fprintf(os.Stderr, "=== %s: %s\n%s\n", f.name, t.name, &logs[i])
			}
			fmt.Printf(" %s |", outcomes[i])
		}
		fmt.Println()
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	fmt.Printf("\nJobs, +messages, and whether the second run fails. Measured with %s on %s.\n", cli.Name(), runtime.GOOS)
	for _, t := range columns {
		if t.skipped != nil {
			fmt.Printf("\n**Not run:** %s: %v\n", t.name, t.skipped)
		}
	}
	return nil
}

func main() {
	verbose := flag.Bool("v", false, "show on stderr what each run prints")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *verbose)
	stop()
	if err != nil {
		log.Fatal("compare: ", err)
	}
}
