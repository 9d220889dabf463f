// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package tfcli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/gofrs/flock"
)

// cacheDir is the folder with one folder for each CLI, "<name>_<version>".
func cacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(base, "terraform-provider-agent", "clis"), nil
}

// cachePath is where a version of a product is kept once it is there.
func cachePath(product, version string) (string, error) {
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, product+"_"+version, exeName(product)), nil
}

func exeName(product string) string {
	if runtime.GOOS == "windows" {
		return product + ".exe"
	}
	return product
}

// fromCache returns what the cache folder holds: Terraform before OpenTofu, as
// on PATH, and of each the newest first.
func fromCache(ctx context.Context, log io.Writer) []CLI {
	var found []CLI
	for _, product := range []string{Terraform, Tofu} {
		pattern, err := cachePath(product, "*")
		if err != nil {
			return nil
		}
		// The only error is a malformed pattern; a cache folder whose name makes
		// one is as good as an empty one.
		paths, _ := filepath.Glob(pattern)
		for _, path := range paths {
			cli, err := inspect(ctx, path, "cache")
			if err != nil {
				logf(log, "passed over: %v", err)
				continue
			}
			found = append(found, cli)
		}
	}
	slices.SortStableFunc(found, func(a, b CLI) int {
		return cmp.Or(cmp.Compare(a.Product, b.Product), b.Version.Compare(a.Version))
	})
	return found
}

// install puts an executable at path, unless it is there already, so that no
// other process ever sees half of it or does the same work at the same time:
// under a lock, create writes to a temporary name, which is renamed.
func install(ctx context.Context, path string, create func(tmp string) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	lock := flock.New(filepath.Dir(path) + ".lock")
	if _, err := lock.TryLockContext(ctx, 200*time.Millisecond); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()

	if _, err := os.Stat(path); err == nil {
		return nil // another process was faster
	}
	tmpDir, err := os.MkdirTemp(filepath.Dir(path), "new-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmpDir)) }()

	tmp := filepath.Join(tmpDir, filepath.Base(path))
	if err := create(tmp); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
