// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package tfcli

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A copy of this test's own executable is the fake CLI, which works on every
// system: it does what the file beside it says.
const fakeSuffix = ".fake"

func TestMain(m *testing.M) {
	if self, err := os.Executable(); err == nil {
		if script, err := os.ReadFile(self + fakeSuffix); err == nil {
			os.Exit(fakeCLI(string(script), os.Args[1:]))
		}
	}
	for name, value := range map[string]string{
		"HTTPS_PROXY": "http://127.0.0.1:1", // nothing listens there: no test reaches a real server
		"https_proxy": "http://127.0.0.1:1",
		"NO_PROXY":    "",
		"no_proxy":    "",
		"GORACE":      "atexit_sleep_ms=0", // else each fake CLI takes a second to end
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// fakeCLI answers as "<first word> v<second word>", or fails when there is no
// second word. It refuses to run with a variable that is the user's own.
func fakeCLI(script string, args []string) int {
	name, version, ok := strings.Cut(script, " ")
	if !ok {
		fmt.Fprintf(os.Stderr, "\n%s is broken\n", name)
		return 1
	}
	config := os.Getenv("TF_CLI_CONFIG_FILE")
	command := strings.Join(args, " ")
	if os.Getenv("TF_LOG") != "" || os.Getenv("CHECKPOINT_DISABLE") == "" ||
		(config != os.DevNull && command != "providers schema -json") {
		fmt.Fprintln(os.Stderr, "not a neutral environment")
		return 1
	}
	switch command {
	case "version":
		fmt.Printf("%s v%s\non test\n", name, version)
	case "providers schema -json":
		if version == "0.0.0" {
			fmt.Println("{}")
			break
		}
		return fakeSchema(name, config)
	default:
		return 2
	}
	return 0
}

// fakeSchema answers with the address as the product would complete it, when the
// configuration asks for the provider and the CLI configuration overrides it.
func fakeSchema(name, config string) int {
	tf, err := os.ReadFile("main.tf")
	if err != nil || !strings.Contains(string(tf), `source = "agentjobs/agent"`) {
		fmt.Fprintln(os.Stderr, "no such provider", err)
		return 1
	}
	host := map[string]string{"Terraform": terraformRegistry, "OpenTofu": tofuRegistry}[name]
	rc, err := os.ReadFile(config)
	if err != nil || !strings.Contains(string(rc), `"`+host+`/agentjobs/agent" = "`) {
		fmt.Fprintln(os.Stderr, "no override", err)
		return 1
	}
	fmt.Printf(`{"format_version":"1.0","provider_schemas":{"%s/agentjobs/agent":{"provider":{"version":9007199254740993}}}}`, host)
	return 0
}

// putFake puts a fake CLI at dir/name and returns its path.
func putFake(t *testing.T, dir, name, script string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, exeName(name))
	writeFile(t, path+fakeSuffix, script)
	copyFile(t, self, path)
	return path
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

// isolate gives the test an empty PATH folder and an empty cache folder, and
// keeps Go's own caches where they are.
func isolate(t *testing.T) (pathDir string) {
	t.Helper()
	goExe, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		value, err := exec.CommandContext(t.Context(), goExe, "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv(name, strings.TrimSpace(string(value)))
	}
	home := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "LocalAppData", "AppData"} {
		t.Setenv(name, home)
	}
	// Else go leaves a process behind that writes there while it is removed.
	config, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(config, "go", "telemetry", "mode"), "off")
	pathDir = t.TempDir()
	t.Setenv("PATH", pathDir)
	t.Setenv(EnvCLI, "")
	t.Setenv("TF_LOG", "TRACE") // a user's own setting, which must not reach the CLI
	return pathDir
}
