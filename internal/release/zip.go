// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package release

import (
	"archive/zip"
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// zipName is the rest of an archive's name: system and architecture.
var zipName = regexp.MustCompile(`^([a-z0-9]+)_([a-z0-9]+)\.zip$`)

// verifyZip looks into an archive: the executable under the name that a CLI
// looks for, built for the system in the archive's name, and the license.
func (d dist) verifyZip(file string) (what string, err error) {
	platform := zipName.FindStringSubmatch(strings.TrimPrefix(filepath.Base(file), d.name("")))
	if platform == nil {
		return "", fmt.Errorf("%s is not named PROJECT_VERSION_OS_ARCH.zip", file)
	}
	executable := project + "_v" + d.version
	if platform[1] == "windows" {
		executable += ".exe"
	}
	archive, err := zip.OpenReader(file)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	if len(archive.File) != 2 {
		return "", fmt.Errorf("%s holds %d files, want the executable and the license", file, len(archive.File))
	}
	for _, entry := range archive.File {
		switch entry.Name {
		case "LICENSE":
		case executable:
			if entry.Mode().Perm()&0o111 == 0 {
				return "", fmt.Errorf("%s: %s is not executable", file, entry.Name)
			}
			goVersion, err := verifyExecutable(entry, platform[1], platform[2])
			if err != nil {
				return "", fmt.Errorf("%s: %w", file, err)
			}
			what = "provider, " + goVersion
		default:
			return "", fmt.Errorf("%s holds %s", file, entry.Name)
		}
	}
	return what, nil
}

// verifyExecutable reads how the executable was built.
func verifyExecutable(entry *zip.File, goos, goarch string) (goVersion string, err error) {
	content, err := readEntry(entry)
	if err != nil {
		return "", err
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return "", err
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	for key, want := range map[string]string{"GOOS": goos, "GOARCH": goarch, "CGO_ENABLED": "0", "-trimpath": "true", "vcs.revision": ""} {
		if settings[key] != want {
			return "", fmt.Errorf("%s was built with %s=%q, want %q", entry.Name, key, settings[key], want)
		}
	}
	return info.GoVersion, nil
}

func readEntry(entry *zip.File) (_ []byte, err error) {
	const most = 200 << 20
	if entry.UncompressedSize64 > most {
		return nil, fmt.Errorf("%s has %d bytes, more than it ever should", entry.Name, entry.UncompressedSize64)
	}
	r, err := entry.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return io.ReadAll(io.LimitReader(r, most))
}

// sameExecutable compares an executable with the one in this platform's archive.
func (d dist) sameExecutable(file string) (err error) {
	want, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	archive, err := zip.OpenReader(filepath.Join(d.dir, d.name(runtime.GOOS+"_"+runtime.GOARCH+".zip")))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	for _, entry := range archive.File {
		if !strings.HasPrefix(entry.Name, project) {
			continue
		}
		got, err := readEntry(entry)
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%s differs from one built with an empty build cache", entry.Name)
		}
		return nil
	}
	return fmt.Errorf("no executable for %s/%s", runtime.GOOS, runtime.GOARCH)
}
