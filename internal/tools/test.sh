#!/bin/sh
# Copyright (c) the terraform-provider-agent authors
# SPDX-License-Identifier: MPL-2.0

# Runs every test, acceptance tests included, on the CLI that tfcli finds, and
# lists what failed or was skipped, and why. Arguments are passed to go test, to run
# some tests only; PACKAGES names some packages only.
set -eu
cd "$(dirname "$0")/../.."

# Everything is built once: tests, tools, and the provider that the tests give to the CLI.
if [ "$(go env CGO_ENABLED)" = 1 ]; then
	export GOFLAGS="${GOFLAGS:-} -race"
	export GORACE="atexit_sleep_ms=10 ${GORACE:-}" # else each end of a provider takes a second
else
	echo "no C compiler: the tests run without the race detector"
fi

# Ends here when there is no CLI: acceptance tests are never skipped for lack of one.
env=$(go run ./internal/tools/tfcli/cmd/tfcli env)
eval "$env"
echo "CLI: $("$TF_ACC_TERRAFORM_PATH" version | head -n 1) ($TF_ACC_TERRAFORM_PATH)"

# Packages that use a CLI mostly wait, so one more than there are processors runs at once, and the longest first.
packages=$(($(getconf _NPROCESSORS_ONLN) + 1))

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
# Vet is a part of make lint. The limit is for a test that hangs: Go's own ten minutes are one for slow machines too.
# shellcheck disable=SC2086 # PACKAGES may be several
go run -modfile=internal/tools/lint/go.mod gotest.tools/gotestsum --format pkgname --format-hide-empty-pkg --jsonfile "$log" -- \
	-p "$packages" -vet=off -timeout=1h "$@" ${PACKAGES:-./internal/tools/demo ./internal/test/chaos ./internal/test/explore ./...} || status=$?
sed -n 's/.*"Output":"\(played .*\)\\n"}/\1/p' "$log"
exit $status
