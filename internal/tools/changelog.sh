#!/bin/sh
# Copyright (c) the terraform-provider-agent authors
# SPDX-License-Identifier: MPL-2.0

# A change of what is shipped needs an entry under Unreleased in CHANGELOG.md.
# Compares the working tree with where the branch left main: with
# $CHANGELOG_BASE, or else the remote's main branch. A commit with the trailer
# "Changelog: none" says that users cannot notice the change.
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

changed=$(git diff --name-only "$base" -- main.go internal/provider internal/agentapi internal/wait internal/journal ':!*_test.go')
if [ -z "$changed" ]; then
	exit 0
fi
if git log --format='%(trailers:key=Changelog,valueonly)' "$base"..HEAD | grep -qix none; then
	echo 'changelog: not asked for: a commit says "Changelog: none"'
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
