#!/bin/sh
# Copyright (c) the terraform-provider-agent authors
# SPDX-License-Identifier: MPL-2.0

# Runs every test, acceptance tests included, on the CLI that tfcli finds, and
# lists what failed or was skipped, and why. Arguments are passed to go test, to run
# some tests only; PACKAGES names some packages only.
set -eu
cd "$(dirname "$0")/../.."

# Ends here when there is no CLI: acceptance tests are never skipped for lack of one.
env=$(CGO_ENABLED=0 go run ./internal/tools/tfcli/cmd/tfcli env)
eval "$env"
echo "CLI: $("$TF_ACC_TERRAFORM_PATH" version | head -n 1) ($TF_ACC_TERRAFORM_PATH)"

# In a pipeline, the provider warns of a journal on the runner's disk.
unset CI TF_BUILD TFC_RUN_ID

race=-race
export GORACE="atexit_sleep_ms=10 ${GORACE:-}" # else the end of each package takes a second
if [ "$(go env CGO_ENABLED)" != 1 ]; then
	race=
	echo "no C compiler: the tests run without the race detector"
fi

# Exploration and lives have no time for the race detector, so they are a second build: without C, as that of
# the provider for a CLI. They run beside the tests that use one, which mostly wait. Vet is a part of make lint.
explored=
if [ $# = 0 ] && [ -z "${PACKAGES:-}" ]; then
	explored=$(mktemp)
	trap 'rm -f "$explored"' EXIT
	CGO_ENABLED=0 nice go test -v -vet=off -timeout=1h ./internal/test/explore ./internal/test/lives >"$explored" 2>&1 &
	exploration=$!
fi

# Packages that use a CLI mostly wait, so one more than there are processors runs at once, and the longest first.
packages=$(($(getconf _NPROCESSORS_ONLN) + 1))

gotestsum=$(CGO_ENABLED=0 go tool -modfile=internal/tools/lint/go.mod -n gotestsum)

set -x
status=0
# The limit is for a test that hangs: Go's own ten minutes are one for slow machines too.
# shellcheck disable=SC2086 # race may be empty, and PACKAGES several
"$gotestsum" --format pkgname --format-hide-empty-pkg -- -p "$packages" -vet=off -timeout=1h $race "$@" ${PACKAGES:-./internal/tools/demo ./internal/test/chaos ./internal/job ./internal/test/matrix ./...} || status=$?
{ set +x; } 2>/dev/null
if [ -n "$explored" ]; then
	wait "$exploration" || status=$?
	grep -vE '^ *(=== |--- PASS)' "$explored" # -v prints what was played, from the cache too
fi
exit $status
