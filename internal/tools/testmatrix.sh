#!/usr/bin/env bash
# Copyright (c) the terraform-provider-agent authors
# SPDX-License-Identifier: MPL-2.0

# Runs the packages whose tests start a CLI on every CLI: those on PATH or in the
# cache folder, and the two that this project pins. With -others without the one
# that "make test" uses.
set -euo pipefail
cd "$(dirname "$0")/../.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
go build -o "$tmp/" ./internal/tools/source/cmd/build ./internal/tools/tfcli/cmd/tfcli

failed=
for name in terraform opentofu; do
	"$tmp/build" "$name" >"$tmp/path" || failed="$failed build-$name"
done
tested=
[ "${1:-}" != -others ] || tested=$("$tmp/tfcli" find)

export PACKAGES="${PACKAGES:-./internal/job ./internal/tools/demo ./internal/test/chaos}"
"$tmp/tfcli" list >"$tmp/clis"
while read -r product version path <&3; do
	if [ "$path" = "$tested" ]; then
		echo "$product $version: run by make test" >>"$tmp/table"
		continue
	fi
	TF_CLI=$path internal/tools/test.sh -count=1 2>&1 | tee "$tmp/log" || failed="$failed $product-$version"
	# gotestsum's summary: its last line counts, the lines before it tell why tests were skipped or failed.
	sed -n "s/^DONE/$product $version:/p" "$tmp/log" >>"$tmp/table"
done 3<"$tmp/clis"

echo
cat "$tmp/table"
[ -z "$failed" ] || {
	echo "failed:$failed" >&2
	exit 1
}
