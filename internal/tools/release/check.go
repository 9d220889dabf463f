// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package release makes a release of the last commit as it would be published,
// signed with a key of nobody, and does with it what its users will do. Nothing
// is published.
package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

// check is one run.
type check struct {
	out     io.Writer
	tmp     string
	root    string // of the repository
	keyring keyring
	start   time.Time
}

// Check runs the check and shows on out what it does. The current folder must
// be inside the repository. No file is left behind.
func Check(ctx context.Context, out io.Writer) (err error) {
	root, err := tfcli.RepositoryRoot(ctx)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "release-") // short: GPG's sockets are below it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	c := &check{out: out, tmp: tmp, root: root, start: time.Now()}

	c.step("a throw-away key to sign with")
	c.keyring, err = newKeyring(ctx, filepath.Join(tmp, "gpg"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.keyring.close(context.WithoutCancel(ctx))) }()
	return c.run(ctx)
}

func (c *check) step(format string, args ...any) {
	fmt.Fprintf(c.out, "%7s  %s\n", time.Since(c.start).Round(time.Second), fmt.Sprintf(format, args...))
}

func (c *check) run(ctx context.Context) error {
	clone := filepath.Join(c.tmp, "clone")
	if err := c.clone(ctx, clone); err != nil {
		return err
	}
	// Before GoReleaser calls it for several archives at once, and each builds it.
	c.step("syft, then goreleaser check (the first time many minutes: both are built)")
	if err := c.tool(ctx, clone, "syft", "version"); err != nil {
		return err
	}
	if err := c.tool(ctx, clone, "goreleaser", "check"); err != nil {
		return err
	}
	c.step("goreleaser release --snapshot: every platform, SBOMs, signatures (minutes)")
	if err := c.snapshot(ctx, clone); err != nil {
		return err
	}
	d, err := openDist(clone)
	if err != nil {
		return err
	}
	c.step("the registry's rules")
	artifacts, err := d.verify(ctx, c.keyring)
	if err != nil {
		return err
	}
	if err := c.buildAgain(ctx, clone, d); err != nil {
		return err
	}
	installs, err := c.installAll(ctx, d, artifacts)
	if err != nil {
		return err
	}
	return c.report(artifacts, installs)
}

// clone makes a clone of the last commit: what is not committed is not released.
func (c *check) clone(ctx context.Context, dir string) error {
	commit, err := call(exec.CommandContext(ctx, "git", "-C", c.root, "log", "-1", "--format=%h %s"))
	if err != nil {
		return err
	}
	c.step("clone of %s", strings.TrimSpace(commit))
	if changed, err := call(exec.CommandContext(ctx, "git", "-C", c.root, "status", "--porcelain")); err != nil {
		return err
	} else if changed != "" {
		c.step("not in it, as it is not committed:\n%s", strings.TrimRight(changed, "\n"))
	}
	_, err = call(exec.CommandContext(ctx, "git", "clone", "--quiet", c.root, dir))
	return err
}

// snapshot makes the release of a clone. GoReleaser's own limit of an hour is
// none for a slow machine.
func (c *check) snapshot(ctx context.Context, clone string, args ...string) error {
	return c.tool(ctx, clone, "goreleaser", append([]string{"release", "--snapshot", "--clean", "--timeout=24h"}, args...)...)
}

// tool runs a tool that the clone pins in a module of its own; what it prints
// is told when it fails.
func (c *check) tool(ctx context.Context, clone, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"tool", "-modfile=internal/tools/" + name + "/go.mod", name}, args...)...)
	cmd.Dir = clone
	cmd.Env = append(os.Environ(), "GNUPGHOME="+c.keyring.dir, "GPG_FINGERPRINT="+c.keyring.fingerprint)
	_, err := call(cmd)
	return err
}

// report prints two tables. The installs are lines of the second, with tabs.
func (c *check) report(artifacts []artifact, installs []string) error {
	table := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nARTIFACT\tBYTES\tSHA256\tWHAT")
	for _, a := range artifacts {
		fmt.Fprintf(table, "%s\t%d\t%.12s…\t%s\n", a.name, a.size, a.sha256, a.what)
	}
	fmt.Fprintln(table, "\nCLI\tMIRROR\tDONE")
	fmt.Fprintln(table, strings.Join(installs, "\n"))
	fmt.Fprintf(table, "\nTwo builds were byte for byte the same; %s/%s also from an empty build cache.\nNothing was published. That took %s.\n",
		runtime.GOOS, runtime.GOARCH, time.Since(c.start).Round(time.Second))
	return table.Flush()
}

// call runs a command and returns all that it prints; a failure tells it.
func call(cmd *exec.Cmd) (string, error) {
	text, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, text)
	}
	return string(text), err
}
