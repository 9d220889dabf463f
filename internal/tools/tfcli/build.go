// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package tfcli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Build returns the product in the version that internal/tools asks for,
// building it into the cache folder when it is not there yet: minutes, with a
// sign of life in log. The current folder must be inside the provider's module.
func Build(ctx context.Context, product string, log io.Writer) (CLI, error) {
	folder, module := "terraform", "github.com/hashicorp/terraform"
	if product == Tofu {
		folder, module = "opentofu", "github.com/opentofu/opentofu"
	}
	root, err := RepositoryRoot(ctx)
	if err != nil {
		return CLI{}, err
	}
	dir := filepath.Join(root, "internal", "tools", folder)
	version, err := requiredVersion(ctx, dir, module)
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

	logf(log, "building %s %s from source, for tests only; this takes minutes, once", folder, version)
	stop := progress(ctx, log, folder)
	err = install(ctx, path, func(tmp string) error {
		// As the product's own releases are: without C, and under its plain
		// version instead of a "-dev" one.
		_, err := runGo(ctx, dir, "build", "-o", tmp, "-ldflags", "-s -w -X "+module+"/version.dev=no", "tool")
		return err
	})
	stop()
	if err != nil {
		return CLI{}, fmt.Errorf("building %s %s: %w", folder, version, err)
	}
	return inspect(ctx, path, "built")
}

// progress writes how long it has been every half a minute until stopped.
func progress(ctx context.Context, log io.Writer, name string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	start := time.Now()
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-time.After(30 * time.Second):
				logf(log, "still building %s (%s)", name, time.Since(start).Round(time.Second))
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
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

// runGo returns what a go command prints.
func runGo(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
	cmd.WaitDelay = 10 * time.Second // a killed go leaves compilers that hold the pipes
	return output(cmd)
}
