// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package tfcli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A recipe says how a product is built from the module that requires it.
type recipe struct {
	name    string // as its makers write it
	folder  string // under internal/tools
	module  string
	command string // package path of its main package
}

func recipeFor(product string) (recipe, error) {
	switch product {
	case Tofu:
		return recipe{
			name:    "OpenTofu",
			folder:  "opentofu",
			module:  "github.com/opentofu/opentofu",
			command: "github.com/opentofu/opentofu/cmd/tofu",
		}, nil
	case Terraform:
		return recipe{
			name:    "Terraform",
			folder:  "terraform",
			module:  "github.com/hashicorp/terraform",
			command: "github.com/hashicorp/terraform",
		}, nil
	default:
		return recipe{}, fmt.Errorf("unknown product %q: %s or %s", product, Terraform, Tofu)
	}
}

// Build returns the product in the version that internal/tools asks for,
// building it into the cache folder when it is not there yet: minutes, with a
// sign of life in log. The current folder must be inside the provider's module.
func Build(ctx context.Context, product string, log io.Writer) (CLI, error) {
	r, err := recipeFor(product)
	if err != nil {
		return CLI{}, err
	}
	dir, err := moduleFolder(ctx, r.folder)
	if err != nil {
		return CLI{}, err
	}
	version, err := requiredVersion(ctx, dir, r.module)
	if err != nil {
		return CLI{}, err
	}
	path, err := cachePath(product, strings.TrimPrefix(version, "v"))
	if err != nil {
		return CLI{}, err
	}
	if _, err := os.Stat(path); err == nil {
		return inspect(ctx, path, "cache")
	}

	logf(log, "building %s %s from source, for tests only; this takes minutes, once", r.name, version)
	stop := progress(log, r.name)
	err = install(ctx, path, func(ctx context.Context, tmp string) error { return r.build(ctx, dir, tmp) })
	stop()
	if err != nil {
		return CLI{}, fmt.Errorf("building %s %s: %w", r.name, version, err)
	}
	return inspect(ctx, path, "built")
}

// build compiles as the product's own releases are: without C, and under its
// plain version instead of a "-dev" one.
func (r recipe) build(ctx context.Context, dir, out string) error {
	_, err := runGo(ctx, dir, "build", "-o", out, "-ldflags", "-s -w -X "+r.module+"/version.dev=no", r.command)
	return err
}

// progress writes how long it has been every half a minute until stopped.
func progress(log io.Writer, name string) (stop func()) {
	start := time.Now()
	ticker := time.NewTicker(30 * time.Second)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ticker.C:
				logf(log, "still building %s (%s)", name, time.Since(start).Round(time.Second))
			case <-quit:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(quit)
		<-done
	}
}

// moduleFolder returns a folder of internal/tools.
func moduleFolder(ctx context.Context, name string) (string, error) {
	root, err := RepositoryRoot(ctx)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, "internal", "tools", name)
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		return "", fmt.Errorf("not inside the provider's repository: %w", err)
	}
	return dir, nil
}

// requiredVersion reads from the go.mod in dir which version of module it requires.
func requiredVersion(ctx context.Context, dir, module string) (string, error) {
	doc, err := runGo(ctx, dir, "mod", "edit", "-json")
	if err != nil {
		return "", err
	}
	var gomod struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal([]byte(doc), &gomod); err != nil {
		return "", err
	}
	for _, require := range gomod.Require {
		if require.Path == module {
			return require.Version, nil
		}
	}
	return "", fmt.Errorf("%s requires no %s", filepath.Join(dir, "go.mod"), module)
}

// runGo returns what a go command prints; a failure tells the end of what it
// wrote to stderr, where a compiler says what is wrong.
func runGo(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
	cmd.WaitDelay = 10 * time.Second // a killed go leaves compilers that hold the pipes
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return "", err
		}
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, tail(stderr.String(), 2000))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// tail returns the last lines of text, at most limit bytes of them.
func tail(text string, limit int) string {
	text = strings.TrimSpace(text)
	if len(text) <= limit {
		return text
	}
	text = text[len(text)-limit:]
	_, rest, _ := strings.Cut(text, "\n")
	return rest
}
