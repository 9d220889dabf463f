// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package release

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// keyring is a folder of GPG with one key, of nobody.
type keyring struct{ dir, fingerprint string }

func newKeyring(ctx context.Context, dir string) (keyring, error) {
	k := keyring{dir: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return k, err
	}
	// RSA: the registry takes no other key, but DSA.
	if _, err := k.gpg(ctx, "--passphrase", "", "--quick-generate-key", "release-check <release-check@example.invalid>", "rsa3072", "sign", "never"); err != nil {
		return k, err
	}
	list, err := k.gpg(ctx, "--with-colons", "--list-keys")
	if err != nil {
		return k, err
	}
	for line := range strings.Lines(list) {
		if fields := strings.Split(line, ":"); fields[0] == "fpr" && len(fields) > 9 {
			k.fingerprint = fields[9]
			return k, nil
		}
	}
	return k, fmt.Errorf("gpg shows no key:\n%s", list)
}

// verify checks the detached signature beside file, which must be a binary one.
func (k keyring) verify(ctx context.Context, file string) error {
	signature, err := os.ReadFile(file + ".sig")
	if err != nil {
		return err
	}
	if bytes.HasPrefix(signature, []byte("-----BEGIN")) {
		return fmt.Errorf("%s.sig is armored: the registry takes binary signatures alone", file)
	}
	_, err = k.gpg(ctx, "--verify", file+".sig", file)
	return err
}

// close ends the agent that gpg has left running.
func (k keyring) close(ctx context.Context) error {
	return exec.CommandContext(ctx, "gpgconf", "--homedir", k.dir, "--kill", "all").Run()
}

func (k keyring) gpg(ctx context.Context, args ...string) (string, error) {
	return call(exec.CommandContext(ctx, "gpg", append([]string{"--homedir", k.dir, "--batch", "--quiet"}, args...)...))
}
