// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package release

import (
	"archive/zip"
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

// zipName is the rest of an archive's name: system and architecture.
var zipName = regexp.MustCompile(`^([a-z0-9]+)_([a-z0-9]+)\.zip$`)

// verifyZip looks into an archive: how was the executable built, and was it for
// the system in the archive's name?
func (d dist) verifyZip(file string) (what string, err error) {
	platform := zipName.FindStringSubmatch(strings.TrimPrefix(filepath.Base(file), d.name("")))
	if platform == nil {
		return "", fmt.Errorf("%s is not named PROJECT_VERSION_OS_ARCH.zip", file)
	}
	content, err := d.executable(file, platform[1])
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	if err := verifyBuild(info, platform[1], platform[2]); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return "provider, " + info.GoVersion, nil
}

func verifyBuild(info *debug.BuildInfo, goos, goarch string) error {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	for key, want := range map[string]string{"GOOS": goos, "GOARCH": goarch, "CGO_ENABLED": "0", "-trimpath": "true", "vcs.revision": ""} {
		if settings[key] != want {
			return fmt.Errorf("it was built with %s=%q, want %q", key, settings[key], want)
		}
	}
	return nil
}

// executable reads the executable out of an archive, where it must be under the
// name that a CLI looks for, beside the license and nothing else.
func (d dist) executable(file, goos string) (_ []byte, err error) {
	name := project + "_v" + d.version
	if goos == "windows" {
		name += ".exe"
	}
	archive, err := zip.OpenReader(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	var names []string
	for _, entry := range archive.File {
		names = append(names, entry.Name)
		if entry.Name == name && entry.Mode().Perm()&0o111 == 0 {
			return nil, fmt.Errorf("%s is not executable", name)
		}
	}
	slices.Sort(names)
	if want := []string{"LICENSE", name}; !slices.Equal(names, want) {
		return nil, fmt.Errorf("it holds %v, want %v", names, want)
	}
	return fs.ReadFile(archive, name)
}
