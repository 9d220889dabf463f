// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package source

import (
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// serve makes a folder the only module proxy. It has version v1.2.3 of a module that is shaped like
// Terraform: its main package needs a module that is not part of it.
func serve(t *testing.T) {
	t.Helper()
	const (
		prefix = "github.com/hashicorp/terraform@v1.2.3/"
		gomod  = `module github.com/hashicorp/terraform

go 1.26

require github.com/hashicorp/terraform/internal/backend/remote-state/s3 v0.0.0

replace github.com/hashicorp/terraform/internal/backend/remote-state/s3 => ./internal/backend/remote-state/s3
`
		main = `package main

import "github.com/hashicorp/terraform/internal/backend/remote-state/s3"

var dev = "yes"

func main() {
	println("dev", dev)
	s3.New()
}
`
	)
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": gomod, "main.go": main, "internal/backend/backend.go": "package backend\n\ntype Backend any\n",
	} {
		file, err := w.Create(prefix + name)
		if err == nil {
			_, err = file.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(
		w.Close(),
		os.CopyFS(filepath.Join(dir, "proxy", "github.com", "hashicorp", "terraform", "@v"), fstest.MapFS{
			"v1.2.3.info": {Data: []byte(`{"Version":"v1.2.3"}`)}, "v1.2.3.mod": {Data: []byte(gomod)}, "v1.2.3.zip": {Data: archive.Bytes()},
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := Go(t.Context(), "", "env", "GOCACHE")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", cache)
	t.Setenv("GOPROXY", "file:///"+strings.TrimPrefix(filepath.ToSlash(filepath.Join(dir, "proxy")), "/"))
	t.Setenv("GONOSUMDB", "*")
	t.Setenv("GOMODCACHE", filepath.Join(dir, "modules"))
	t.Cleanup(func() { // go makes it read-only
		if out, err := exec.Command("go", "clean", "-modcache").CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "LocalAppData", "AppData"} {
		t.Setenv(name, dir)
	}
	// With telemetry, go leaves a process behind that writes there while it is removed.
	if out, err := exec.CommandContext(t.Context(), "go", "telemetry", "off").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestBuild(t *testing.T) {
	serve(t)
	command := Terraform()
	command.version, command.ldflags = "v1.2.3", " -X main.dev=no"

	_, err := command.Build(t.Context(), t.Output())
	if err == nil || !strings.Contains(err.Error(), "https://sum.golang.org/lookup/github.com/hashicorp/terraform@v1.2.3,") {
		t.Fatalf("got %v, want an error that says where to look up the hash", err)
	}
	before, _, _ := strings.Cut(err.Error(), ", not "+command.sum)
	_, command.sum, _ = strings.Cut(before, "its hash is ")
	exe, err := command.Build(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), exe).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "dev no\npanic: this build is for tests and has no backend s3") {
		t.Errorf("got %v: %s", err, out)
	}
	left, err := os.ReadDir(filepath.Dir(exe))
	if err != nil || len(left) != 1 {
		t.Errorf("got %v, %v, want the executable alone", left, err)
	}

	command.sum = "the module is not needed any more"
	if again, err := command.Build(t.Context(), t.Output()); again != exe || err != nil {
		t.Errorf("got %s, %v, want %s", again, err, exe)
	}
}
