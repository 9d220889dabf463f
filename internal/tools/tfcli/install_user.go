// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package tfcli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// InstallForUser is InstallPlugin for a user's own CLI: it replaces what an
// earlier call has left in dir, and tells out how to use it. Nothing outside
// dir is written, the user's CLI configuration least of all.
func InstallForUser(ctx context.Context, dir string, out io.Writer) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	mirror := filepath.Join(dir, "mirror")
	if err := os.RemoveAll(mirror); err != nil {
		return err
	}
	p, err := InstallPlugin(ctx, dir)
	if err != nil {
		return err
	}
	override := overrideConfig(filepath.Dir(p.Executable), "  direct {}\n")
	withInit := mirrorConfig(mirror, fmt.Sprintf("  direct {\n    exclude = [%q, %q]\n  }\n",
		terraformRegistry+"/"+Source, tofuRegistry+"/"+Source))
	err = errors.Join(
		os.WriteFile(p.OverrideConfig, []byte(override), 0o600),
		os.WriteFile(p.MirrorConfig, []byte(withInit), 0o600),
	)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, `agent %s is in %s

Use it without init, in this shell alone:

export TF_CLI_CONFIG_FILE='%s'

That file replaces your configuration of the CLI, its credentials included. To keep yours, copy its text there instead (~/.terraformrc or
~/.tofurc, on Windows %%APPDATA%%\terraform.rc or tofu.rc):

%s
With dev_overrides each command warns that they are in use. Modules come with get, and init is needed for other providers
only; if it fails for want of this provider, use the other way.

Use it with init, as if it came from a registry:

export TF_CLI_CONFIG_FILE='%s'

%s
After another install, delete the provider's entry from .terraform.lock.hcl and run init again.

Nothing else was changed. To remove it, delete %s
`, pluginVersion, dir, p.OverrideConfig, override, p.MirrorConfig, withInit, dir)
	return err
}
