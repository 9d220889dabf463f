#!/bin/sh
# Copyright (c) the terraform-provider-agent authors
# SPDX-License-Identifier: MPL-2.0

# Writes docs/ from the provider's schemas, templates/ and examples/, and checks
# the result against the registry's rules.
set -eu
cd "$(dirname "$0")/../.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

tfplugindocs() {
	# Of use only when it fails: it tells each file that it looks at.
	go tool -modfile=internal/tools/lint/go.mod tfplugindocs "$1" \
		--provider-name agent --providers-schema "$tmp/schema.json" >"$tmp/log" 2>&1 || {
		cat "$tmp/log" >&2
		exit 1
	}
}

go run ./internal/tools/tfcli/cmd/providerschema >"$tmp/schema.json"
tfplugindocs generate
tfplugindocs validate
