// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// buildAgain builds everything in another folder, and this platform's
// executable from an empty build cache too, and compares byte for byte.
func (c *check) buildAgain(ctx context.Context, clone string, d dist) error {
	c.step("the same again, from a clone elsewhere")
	elsewhere := filepath.Join(c.tmp, "elsewhere", "another-clone")
	// Of the clone: the repository may have a new commit by now.
	if _, err := call(exec.CommandContext(ctx, "git", "clone", "--quiet", clone, elsewhere)); err != nil {
		return err
	}
	if err := c.snapshot(ctx, elsewhere, "--skip=sbom,sign"); err != nil {
		return err
	}
	first, err := os.ReadFile(filepath.Join(d.dir, d.name("SHA256SUMS")))
	if err != nil {
		return err
	}
	second, err := os.ReadFile(filepath.Join(elsewhere, "dist", d.name("SHA256SUMS")))
	if err != nil {
		return err
	}
	if !bytes.Equal(first, second) {
		return fmt.Errorf("two builds differ:\n%s\n%s", first, second)
	}

	c.step("and this platform's executable, from an empty build cache")
	executable := filepath.Join(c.tmp, "executable")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -X main.version="+d.version, "-o", executable, ".")
	cmd.Dir = elsewhere
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOCACHE="+filepath.Join(c.tmp, "cache"))
	if _, err := call(cmd); err != nil {
		return err
	}
	released, err := d.executable(filepath.Join(d.dir, d.name(runtime.GOOS+"_"+runtime.GOARCH+".zip")), runtime.GOOS)
	if err != nil {
		return err
	}
	built, err := os.ReadFile(executable)
	if err == nil && !bytes.Equal(released, built) {
		err = errors.New("the executable differs from one built with an empty build cache")
	}
	return err
}
