// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Command demo shows the provider at work, end to end and without a service: a
// real CLI with the real plugin runs examples/demo against the simulator, and
// what reached the simulator is compared with what should have. The tests in
// this folder run the other examples.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

const (
	watching = 2 * time.Second  // how long a viewer sees the wait before the end
	grace    = 20 * time.Second // how long an interrupted CLI may take to end
)

func main() {
	// SIGPIPE too: `make demo | head` must not leave a CLI and its files behind.
	root := context.Background() //nolint:forbidigo // where a context begins
	ctx, stop := signal.NotifyContext(root, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	info, err := os.Stdout.Stat()
	color := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	err = run(ctx, os.Stdout, color, filepath.Join("examples", "demo"), 12*time.Second) // the CLI shows "Still creating..." every ten
	interrupted := ctx.Err() != nil
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		if interrupted {
			os.Exit(130) // as in a shell after Ctrl-C
		}
		os.Exit(1)
	}
}

// demo is one run.
type demo struct {
	io.Writer
	color   bool
	cli     tfcli.CLI
	plugin  tfcli.Plugin
	example string // the folder with the configuration
	dir     string // the root module: its copy
	service *simulator.Server
	env     []string // configures the provider for the service
	key     string
	rows    []string // of the table, with tabs
	checks  []string
	wrong   int
}

// run runs the demo of a folder with a configuration and shows it on out; the first job lasts that long. When ctx ends, the CLI is interrupted. No file is left behind.
func run(ctx context.Context, out io.Writer, color bool, example string, first time.Duration) (err error) {
	if !canInterrupt {
		return fmt.Errorf("the demo presses Ctrl-C, which it cannot do on this system: %w", errors.ErrUnsupported)
	}
	tmp, err := os.MkdirTemp("", "agent-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	// The key is a canary: wherever it turns up, the real key would.
	d := &demo{Writer: out, color: color, example: example, dir: filepath.Join(tmp, "example"), key: "canary_" + strings.ToLower(rand.Text())}
	if d.cli, err = tfcli.Find(ctx, d); err != nil {
		return err
	}
	fmt.Fprintf(d, "CLI:      %s\nprovider: building it; the first time this takes a minute\n", d.cli.Name())
	if d.plugin, err = tfcli.InstallPlugin(ctx, filepath.Join(tmp, "plugin")); err != nil {
		return err
	}
	if err = os.CopyFS(d.dir, os.DirFS(example)); err != nil {
		return err
	}
	journal := filepath.Join(tmp, "journal") // outlives the runner, as a bucket does
	if err = os.Mkdir(journal, 0o700); err != nil {
		return err
	}
	durations := []time.Duration{first, 3 * time.Second, 8 * time.Second}
	d.service = simulator.New(simulator.Options{Key: d.key, Script: func(string, int) simulator.Script {
		duration := durations[0]
		durations = durations[1:]
		return simulator.Script{Duration: duration}
	}})
	server := httptest.NewServer(d.service)
	defer server.Close()
	d.env = []string{
		"AGENT_BASE_URL=" + server.URL, "AGENT_PROJECT_ID=proj_demo", "AGENT_ADMIN_KEY=" + d.key, "AGENT_JOURNAL_URL=" + journal + "?state=docs",
		"PATH=" + d.dir + string(os.PathListSeparator) + os.Getenv("PATH"), // the example has a stand-in for gh
	}
	fmt.Fprintf(d, "service:  simulated, on %s; the key is in AGENT_ADMIN_KEY\n", server.URL)

	start, all := time.Now(), steps()
	for i, s := range all {
		d.headline(fmt.Sprintf("%d/%d  %s", i+1, len(all), s.headline))
		if err := d.do(ctx, s); err != nil {
			return err
		}
	}
	d.report()
	fmt.Fprintf(d, "\nThat took %s. To try it yourself: docs/guides/getting-started.md. With Mintlify: docs/guides/mintlify.md.\n",
		time.Since(start).Round(time.Second))
	if d.wrong > 0 {
		return errors.New("not everything was as expected")
	}
	return nil
}

func (d *demo) report() {
	jobs := d.service.Jobs()
	d.check(len(jobs) == 3 && !slices.ContainsFunc(jobs, func(j simulator.Job) bool { return len(j.Prompts) != 1 }),
		"the service has three jobs, one for each release")
	d.check(!slices.ContainsFunc(d.service.Requests(), func(r simulator.Request) bool { return !r.Authorized }), "every request carried the key")
	d.check(!slices.ContainsFunc(d.checks, func(c string) bool { return strings.Contains(c, "the key is in") }), "the key was found in no output and no file")

	d.headline("What reached the service, and the status in the state: actual / expected")
	table := tabwriter.NewWriter(d, 0, 0, 4, ' ', 0)
	fmt.Fprintln(table, "\tPOST\tGET\tstatus")
	for _, row := range d.rows {
		fmt.Fprintln(table, row)
	}
	_ = table.Flush() // like every write here
	fmt.Fprintln(d, "\n"+strings.Join(d.checks, "\n"))
}

func (d *demo) check(ok bool, what string) {
	d.checks = append(d.checks, d.verdict(ok)+"  "+what)
}

func (d *demo) verdict(ok bool) string {
	if ok {
		return d.paint("\x1b[32m", "ok")
	}
	d.wrong++
	return d.paint("\x1b[31m", "WRONG")
}

func (d *demo) headline(text string) {
	fmt.Fprintf(d, "\n%s\n", d.paint("\x1b[1m\x1b[36m", "== "+text))
}

func (d *demo) paint(code, text string) string {
	if !d.color {
		return text
	}
	return code + text + "\x1b[0m"
}
