// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package tfcli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/source"
)

const (
	// Source is the provider's address at a registry, without the host.
	Source = "agentjobs/agent"

	// The registries that a source address without a host is short for.
	terraformRegistry = "registry.terraform.io"
	tofuRegistry      = "registry.opentofu.org"

	// pluginVersion is one that no release has and that the examples ask for (~> 0.1), so that a release is never
	// mistaken for what was built here. No pre-release: a CLI takes one only where
	// a configuration asks for exactly that.
	pluginVersion = "0.999.0"
)

// Plugin is the provider as InstallPlugin has left it in a folder. Give one of
// the two files to CLI.Command.
type Plugin struct {
	Executable string // absolute
	// MirrorConfig is a CLI configuration with which init takes the provider
	// from a mirror beside it, and nothing else from anywhere.
	MirrorConfig string
	// OverrideConfig is a CLI configuration with which commands use the
	// executable without init; each of them warns about that.
	OverrideConfig string
}

// InstallPlugin builds the provider of the repository that the current folder
// belongs to, and installs it below dir for Terraform and OpenTofu.
func InstallPlugin(ctx context.Context, dir string) (Plugin, error) {
	root, err := RepositoryRoot(ctx)
	if err != nil {
		return Plugin{}, err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return Plugin{}, err
	}
	mirror := filepath.Join(dir, "mirror")
	place := func(host string) string {
		return filepath.Join(mirror, host, filepath.FromSlash(Source), pluginVersion, runtime.GOOS+"_"+runtime.GOARCH,
			source.ExeName("terraform-provider-agent_v"+pluginVersion))
	}

	p := Plugin{
		Executable:     place(terraformRegistry),
		MirrorConfig:   filepath.Join(dir, "mirror.tfrc"),
		OverrideConfig: filepath.Join(dir, "override.tfrc"),
	}
	// With -trimpath, Go would compile once more whatever the tests have compiled.
	if err := Build(ctx, root, pluginVersion, p.Executable, "-trimpath"); err != nil {
		return Plugin{}, fmt.Errorf("building the provider: %w", err)
	}
	content, err := os.ReadFile(p.Executable)
	if err != nil {
		return Plugin{}, err
	}
	return p, errors.Join(
		os.MkdirAll(filepath.Dir(place(tofuRegistry)), 0o755),
		os.WriteFile(place(tofuRegistry), content, 0o755),
		os.WriteFile(p.MirrorConfig, []byte(mirrorConfig(mirror, "")), 0o600),
		os.WriteFile(p.OverrideConfig, []byte(overrideConfig(filepath.Dir(p.Executable), "")), 0o600),
	)
}

// Build builds the provider of the repository at root with the flags of a release but for some, so that what is tested is what ships.
func Build(ctx context.Context, root, version, exe string, without ...string) error {
	content, err := os.ReadFile(filepath.Join(root, ".goreleaser.yml"))
	if err != nil {
		return err
	}
	var release struct {
		Builds []struct{ Flags, Ldflags []string }
	}
	if err := yaml.Unmarshal(content, &release); err != nil {
		return err
	}
	args := []string{"build", "-o", exe}
	for _, build := range release.Builds {
		ldflags := strings.ReplaceAll(strings.Join(build.Ldflags, " "), "{{ .Version }}", version)
		args = slices.Concat(args, build.Flags, []string{"-ldflags=" + ldflags})
	}
	args = slices.DeleteFunc(args, func(arg string) bool { return slices.Contains(without, arg) })
	_, err = source.Go(ctx, root, append(args, ".")...)
	return err
}

// RepositoryRoot returns the folder of the go.mod that the current folder
// belongs to.
func RepositoryRoot(ctx context.Context) (string, error) {
	gomod, err := source.Go(ctx, "", "env", "GOMOD")
	if err != nil {
		return "", err
	}
	if gomod == "" || gomod == os.DevNull {
		return "", errors.New("not inside the provider's repository: there is no go.mod")
	}
	return filepath.Dir(gomod), nil
}

// mirrorConfig is a CLI configuration that takes the provider from a mirror.
// The rest says where others come from.
func mirrorConfig(mirror, rest string) string {
	return fmt.Sprintf(`provider_installation {
  filesystem_mirror {
    path    = %q
    include = [%q, %q]
  }
%s}
`, filepath.ToSlash(mirror), terraformRegistry+"/"+Source, tofuRegistry+"/"+Source, rest)
}

// overrideConfig is a CLI configuration that uses the provider in a folder
// without init. The rest says where others come from.
func overrideConfig(folder, rest string) string {
	return fmt.Sprintf(`provider_installation {
  dev_overrides {
    %q = %[3]q
    %[2]q = %[3]q
  }
%[4]s}
`, terraformRegistry+"/"+Source, tofuRegistry+"/"+Source, filepath.ToSlash(folder), rest)
}
