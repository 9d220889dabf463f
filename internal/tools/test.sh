#!/bin/sh
# Copyright (c) the terraform-provider-agent authors
# SPDX-License-Identifier: MPL-2.0

# Runs every test, acceptance tests included, on the CLI that tfcli finds, and
# lists what failed or was skipped, and why. Arguments are passed to go test, to run
# some tests only; PACKAGES names some packages only. RACE=1, as in CI, adds the race
# detector, which needs a C compiler, and everything compiled once more.
set -eu
cd "$(dirname "$0")/../.."

export CGO_ENABLED=0 # see the Makefile
if [ -n "${RACE:-}" ] && [ "$(CGO_ENABLED='' go env CGO_ENABLED)" != 1 ]; then
	RACE=
	echo "no C compiler: the tests run without the race detector"
fi

# Ends here when there is no CLI: go test alone skips what needs one.
TF_CLI=$(go run ./internal/tools/tfcli/cmd/tfcli find)
export TF_CLI
echo "CLI: $TF_CLI"

# Packages that use a CLI mostly wait, so one more than there are processors runs at once, and the longest first.
packages=$(($(getconf _NPROCESSORS_ONLN) + 1))

gotestsum=$(go tool -modfile=internal/tools/lint/go.mod -n gotestsum)

# Exploration and lives have no time for the race detector, so it leaves them out: they run beside the tests that
# use a CLI. Vet is a part of make lint. The limit is for a test that hangs: Go's own ten minutes are one for slow machines too.
race=
explored=
if [ -n "${RACE:-}" ]; then
	if [ $# = 0 ] && [ -z "${PACKAGES:-}" ]; then
		explored=$(mktemp)
		trap 'rm -f "$explored"' EXIT
		nice go test -v -vet=off -timeout=1h ./internal/test/explore ./internal/test/lives >"$explored" 2>&1 &
		exploration=$!
	fi
	export CGO_ENABLED=1 GORACE="atexit_sleep_ms=10 ${GORACE:-}" # else the end of each package takes a second
	race=-race
fi

set -x
status=0
# shellcheck disable=SC2086 # race may be empty, and PACKAGES several
"$gotestsum" --format pkgname --format-hide-empty-pkg -- -p "$packages" -vet=off -timeout=1h $race "$@" ${PACKAGES:-./internal/tools/demo ./internal/test/chaos ./internal/test/explore ./internal/job ./...} || status=$?
{ set +x; } 2>/dev/null
if [ -n "$explored" ]; then
	wait "$exploration" || status=$?
	grep -vE '^ *(=== |--- PASS)' "$explored" # -v prints what was played, from the cache too
fi
exit $status
