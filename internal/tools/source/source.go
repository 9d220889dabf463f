// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package source builds other projects' commands from their Go modules, for
// this project's tests. Each is built as a main module, so that its own go.mod,
// replace lines included, and go.sum decide.
package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Command is a command and the module version that it is built from.
type Command struct {
	name    string // of the executable
	module  string
	version string
	sum     string // the module's hash, as in a go.sum
	pkg     string // the main package, relative to the module
	ldflags string
}

// Terraform is under BUSL-1.1 and serves tests alone.
func Terraform() Command {
	return Command{
		name:    "terraform",
		module:  "github.com/hashicorp/terraform",
		version: "v1.16.4",
		sum:     "h1:0yyJB6OufO0kqoNg95TGhf+41NsG77th1DPSnKBD878=",
		pkg:     ".",
		ldflags: " -X github.com/hashicorp/terraform/version.dev=no", // 1.16.4 instead of 1.16.4-dev, as in releases
	}
}

// OpenTofu is under MPL-2.0.
func OpenTofu() Command {
	return Command{
		name:    "tofu",
		module:  "github.com/opentofu/opentofu",
		version: "v1.12.6",
		sum:     "h1:0VT4P8pMmGcCUnQ9JDrJ+Qg2d35Vzm4FFd/9+H7oF98=",
		pkg:     "./cmd/tofu",
		ldflags: " -X github.com/opentofu/opentofu/version.dev=no",
	}
}

// MinIO is an S3 server, under AGPL-3.0: never shipped or linked.
func MinIO() Command {
	return Command{
		name:    "minio",
		module:  "github.com/minio/minio",
		version: "v0.0.0-20260212201848-7aac2a2c5b7c",
		sum:     "h1:/qdoYujxF5MBLDMVLeiYJ/7fBa1HikX39Dvzb9Ji8pA=",
		pkg:     ".",
	}
}

// Versitygw is an S3 server, under Apache-2.0.
func Versitygw() Command {
	return Command{
		name:    "versitygw",
		module:  "github.com/versity/versitygw",
		version: "v1.8.0",
		sum:     "h1:au+wI+aybno/STsQiSm35Uu6Q6iK5MWReQxgO6SEMFc=",
		pkg:     "./cmd/versitygw",
	}
}

// CacheDir is the folder for what this project downloads or builds, in the
// user's cache folder.
func CacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "terraform-provider-agent"), err
}

// Path is where Build puts the executable.
func (c Command) Path() (string, error) {
	dir, err := CacheDir()
	return filepath.Join(dir, c.name+"_"+c.version, ExeName(c.name)), err
}

// ExeName is the file name of an executable on this system.
func ExeName(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}

// Build returns the path of the executable, and builds it first if it is not
// there yet. That takes minutes; log says so.
func (c Command) Build(ctx context.Context, log io.Writer) (_ string, err error) {
	exe, err := c.Path()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(exe); err == nil {
		return exe, nil
	}
	_, _ = fmt.Fprintf(log, "building %s %s from source, for tests only; this takes minutes, once\n", c.name, c.version)
	if err := os.MkdirAll(filepath.Dir(exe), 0o755); err != nil {
		return "", err
	}
	// Beside exe, so that a rename is enough and no process sees half an executable.
	tmp, err := os.MkdirTemp(filepath.Dir(exe), "new-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()

	dir := filepath.Join(tmp, "source")
	if err := c.copyModule(ctx, dir); err != nil {
		return "", fmt.Errorf("%s %s: %w", c.module, c.version, err)
	}
	built := filepath.Join(tmp, c.name)
	if _, err := Go(ctx, dir, "build", "-buildvcs=false", "-ldflags", "-s -w"+c.ldflags, "-o", built, c.pkg); err != nil {
		return "", fmt.Errorf("building %s %s: %w", c.module, c.version, err)
	}
	return exe, os.Rename(built, exe)
}

// download returns the folder of the module's source code in Go's cache, after it has compared its hash.
func (c Command) download(ctx context.Context) (dir string, _ error) {
	var module struct{ Dir, Sum string }
	if err := goJSON(ctx, &module, os.TempDir(), "mod", "download", "-json", c.module+"@"+c.version); err != nil {
		return "", err
	}
	if module.Sum != c.sum {
		return "", fmt.Errorf("its hash is %s, not %s: if you changed its version, compare the hash with https://sum.golang.org/lookup/%s@%s, "+
			"then write it into internal/tools/source/source.go", module.Sum, c.sum, c.module, c.version)
	}
	return module.Dir, nil
}

// copyModule copies the module to dir, and adds stubs for the modules that its
// go.mod replaces by its own subfolders: these are not part of it, and only its
// repository has them.
func (c Command) copyModule(ctx context.Context, dir string) error {
	module, err := c.download(ctx)
	if err != nil {
		return err
	}
	if err := os.CopyFS(dir, os.DirFS(module)); err != nil {
		return err
	}
	var gomod struct {
		Replace []struct{ Old, New struct{ Path string } }
	}
	if err := goJSON(ctx, &gomod, dir, "mod", "edit", "-json"); err != nil {
		return err
	}
	for _, replace := range gomod.Replace {
		if folder, ok := strings.CutPrefix(replace.New.Path, "./"); ok {
			if err := writeStub(filepath.Join(dir, filepath.FromSlash(folder)), replace.Old.Path); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeStub writes a module that stands in for one of Terraform's remote-state
// backends. It panics when a configuration asks for the backend.
func writeStub(dir, module string) error {
	name := path.Base(module)
	code := fmt.Sprintf(`package %s

import "github.com/hashicorp/terraform/internal/backend"

func New() backend.Backend { panic("this build is for tests and has no backend %[1]s") }
`, name)
	return errors.Join(
		os.MkdirAll(dir, 0o755),
		os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module "+module+"\n\ngo 1.26\n"), 0o600),
		os.WriteFile(filepath.Join(dir, name+".go"), []byte(code), 0o600),
	)
}

// Go runs the go command in a folder and returns what it prints, without C and
// with every go.mod and go.sum as they are.
func Go(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
	cmd.WaitDelay = 10 * time.Second // a killed go leaves compilers that hold the pipes
	return Output(cmd)
}

func goJSON(ctx context.Context, to any, dir string, args ...string) error {
	text, err := Go(ctx, dir, args...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), to)
}

// Output runs a command and returns what it prints to stdout, trimmed. The error
// of a command that fails holds all that it wrote.
func Output(cmd *exec.Cmd) (string, error) {
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(text+"\n"+stderr.String()))
	}
	return text, nil
}
