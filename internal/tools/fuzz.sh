#!/bin/sh
# Copyright (c) the terraform-provider-agent authors
# SPDX-License-Identifier: MPL-2.0

# Fuzzes every target of the module in turn, also after one has failed, and names
# at the end those that did. Each gets FUZZTIME: a time, by default 60s, or a
# number of inputs, such as 1000x.
set -eu
cd "$(dirname "$0")/../.."

failed=
for folder in $(find internal -name '*_test.go' -exec grep -l '^func Fuzz' {} + | xargs -n 1 dirname | sort -u); do
	targets=$(go test -list '^Fuzz' "./$folder" | grep '^Fuzz') # all in this folder, or it ends here
	for target in $targets; do
		echo "+ $target in $folder"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-60s}" "./$folder" || failed="$failed $target"
	done
done

if [ -n "$failed" ]; then
	echo "failed:$failed" >&2
	exit 1
fi
