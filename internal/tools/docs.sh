#!/bin/sh
# Copyright (c) the terraform-provider-agent authors
# SPDX-License-Identifier: MPL-2.0

# Writes docs/ from the provider's schemas, templates/ and examples/, and checks
# the result against the registry's rules.
set -eu
cd "$(dirname "$0")/../.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# tfplugindocs asks the terraform on PATH for the schemas. An older one leaves out
# actions without an error, and the pages about them would be removed.
cli=$(go run ./internal/tools/tfcli/cmd/tfcli docs)
ln -s "$cli" "$tmp/terraform"

tfplugindocs() {
	# Its output helps only when it fails: it lists each file.
	PATH="$tmp:$PATH" TF_CLI_CONFIG_FILE=/dev/null CHECKPOINT_DISABLE=1 \
		go tool -modfile=internal/tools/lint/go.mod tfplugindocs "$1" --provider-name agent >"$tmp/log" 2>&1 || {
		cat "$tmp/log" >&2
		exit 1
	}
}

tfplugindocs generate
tfplugindocs validate
