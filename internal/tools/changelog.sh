#!/bin/sh
# Copyright (c) the terraform-provider-agent authors
# SPDX-License-Identifier: MPL-2.0

# A change of what is shipped needs an entry under Unreleased in CHANGELOG.md.
# Compares the working tree with where the branch left main: with
# $CHANGELOG_BASE, or else the remote's main branch. The trailer "Changelog: none"
# says of its own commit that users cannot notice the change.
set -eu
cd "$(dirname "$0")/../.."

base=${CHANGELOG_BASE:-}
if [ -z "$base" ]; then
	base=$(git rev-parse --verify --quiet refs/remotes/origin/HEAD ||
		git rev-parse --verify --quiet refs/remotes/origin/main) || {
		echo "changelog: not checked: there is no origin/main to compare with"
		exit 0
	}
fi
base=$(git merge-base "$base" HEAD) || {
	echo "changelog: not checked: the history is too short to compare with main" >&2
	exit 0
}

# What is not committed yet, and each commit that does not say none.
changed=$({
	git diff --name-only HEAD
	for commit in $(git rev-list --no-merges "$base"..HEAD); do
		git log -1 --format='%(trailers:key=Changelog,valueonly)' "$commit" | grep -qix none ||
			git diff-tree -r --no-commit-id --name-only "$commit"
	done
} | grep -E '^(main\.go$|internal/(plugin|provider|job|send|wording|escape|sleep|agentapi|wait|journal|cli)/)' | grep -v '_test\.go$' | sort -u || true)
if [ -z "$changed" ]; then
	exit 0
fi

unreleased() {
	awk '/^## / { found = /^## \[Unreleased\]/ } found'
}
if [ "$(unreleased <CHANGELOG.md)" = "$(git show "$base":CHANGELOG.md 2>/dev/null | unreleased)" ]; then
	echo "changelog: nothing new under Unreleased in CHANGELOG.md, and these have changed:" >&2
	echo "$changed" | sed 's/^/  /' >&2
	echo 'Where users cannot notice, say "Changelog: none" in the last lines of a commit message.' >&2
	exit 1
fi
