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

	"github.com/agentjobs/terraform-provider-agent/internal/tfcli"
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
	c.step("goreleaser check")
	if err := c.goreleaser(ctx, clone, "check"); err != nil {
		return err
	}
	if err := c.writeNotes(clone); err != nil {
		return err
	}
	c.step("goreleaser release --snapshot: every platform, SBOMs, signatures (minutes)")
	if err := c.goreleaser(ctx, clone, "release", "--snapshot", "--clean", "--release-notes", "../notes.md"); err != nil {
		return err
	}
	d, err := openDist(filepath.Join(clone, "dist"), filepath.Join(clone, "terraform-registry-manifest.json"))
	if err != nil {
		return err
	}
	c.step("the registry's rules")
	artifacts, err := d.verify(ctx, c.keyring)
	if err != nil {
		return err
	}
	if err := c.buildAgain(ctx, d); err != nil {
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

// goreleaser runs the GoReleaser that the clone pins; what it prints is told
// when it fails.
func (c *check) goreleaser(ctx context.Context, clone string, args ...string) error {
	args = append([]string{"tool", "-modfile=internal/tools/goreleaser/go.mod", "goreleaser"}, args...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = clone
	cmd.Env = append(os.Environ(), "GNUPGHOME="+c.keyring.dir, "GPG_FINGERPRINT="+c.keyring.fingerprint)
	_, err := call(cmd)
	return err
}

// writeNotes writes the notes of the version to come, where there is anything to say.
func (c *check) writeNotes(clone string) error {
	changelog, err := os.ReadFile(filepath.Join(clone, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	notes, err := Notes(string(changelog), Unreleased)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.tmp, "notes.md"), []byte(notes), 0o600)
}

// openDist finds out the version from the list of checksums.
func openDist(dir, manifest string) (dist, error) {
	matches, err := filepath.Glob(filepath.Join(dir, project+"_*_SHA256SUMS"))
	if err != nil {
		return dist{}, err
	}
	for _, match := range matches {
		version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(match), project+"_"), "_SHA256SUMS")
		if !strings.HasSuffix(version, "_SBOM") {
			return dist{dir: dir, version: version, manifest: manifest}, nil
		}
	}
	return dist{}, fmt.Errorf("no %s_VERSION_SHA256SUMS in %s", project, dir)
}

func (c *check) report(artifacts []Artifact, installs []installation) error {
	var files, clis strings.Builder
	fmt.Fprintln(&files, "ARTIFACT\tBYTES\tSHA256\tWHAT")
	for _, a := range artifacts {
		fmt.Fprintf(&files, "%s\t%d\t%.12s…\t%s\n", a.Name, a.Size, a.SHA256, a.What)
	}
	fmt.Fprintln(&clis, "CLI\tMIRROR\tDONE")
	for _, i := range installs {
		fmt.Fprintf(&clis, "%s\t%s\t%s\n", i.cli, i.mirror, i.done)
	}
	for _, text := range []string{files.String(), clis.String()} {
		table := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
		fmt.Fprint(table, "\n", text)
		if err := table.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintf(c.out, "\nTwo builds were byte for byte the same; %s/%s also from an empty build cache.\nNothing was published. That took %s.\n",
		runtime.GOOS, runtime.GOARCH, time.Since(c.start).Round(time.Second))
	return nil
}
