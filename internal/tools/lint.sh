#!/bin/sh
# Copyright (c) the terraform-provider-agent authors
# SPDX-License-Identifier: MPL-2.0

# Runs every check, also after one has failed, and names at the end those that did.
set -eu
cd "$(dirname "$0")/../.."

failed=
check() {
	echo "+ $*"
	"$@" || failed="$failed
  $*"
}

check go tool -modfile=internal/tools/lint/go.mod golangci-lint run ./...

# A log or a recording that was pasted may name folders of the machine it comes from.
no_machine_paths() {
	! git --no-pager grep -nIF --untracked -e "$PWD/internal" -e /home/ -e /root/ -e /Users/ -e 'C:\Users' -- . ':!internal/tools/lint.sh' ||
		{ echo "lint: these lines name folders of somebody's machine" >&2 && return 1; }
}
check no_machine_paths

# Each thing has one name, as the map's glossary says. These were others.
no_dropped_words() {
	! git --no-pager grep -niE --untracked -e 'journal entr|tak(e|es|en|ing) over|namesake|superfluous|dealt with|equal job|own runs?\b' \
		-- '*.go' '*.md' '*.tmpl' ':!docs' ||
		{ echo "lint: these words were dropped: see the glossary in internal/README.md" >&2 && return 1; }
}
check no_dropped_words

for module in $(git ls-files 'go.mod' '*/go.mod' | xargs -n 1 dirname); do
	# Tidying GoReleaser's would ask for a module of a test of a dependency, which not every module proxy has.
	[ "$module" = internal/tools/goreleaser ] || check go -C "$module" mod tidy -diff
	check go -C "$module" mod verify
done

check internal/tools/changelog.sh

check "$(go run ./internal/tools/tfcli/cmd/tfcli find)" fmt -check -diff -recursive examples

check go tool -modfile=internal/tools/lint/go.mod actionlint .github/workflows/*.yml examples/guides/pipelines/github.yml examples/guides/recipes/*.yml

if [ -n "$failed" ]; then
	printf 'failed:%s\n"make fmt" repairs what is only formatting.\n' "$failed" >&2
	exit 1
fi
