#!/bin/sh
# Copyright (c) the terraform-provider-agent authors
# SPDX-License-Identifier: MPL-2.0

# Draws the pictures of docs/: demo.svg and killed.svg from a recording of the demo, and
# lifecycle.svg from picture/lifecycle.dot.
set -eu
cd "$(dirname "$0")/../.."

missing=
for tool in asciinema npm dot; do
	command -v "$tool" >/dev/null || missing="$missing $tool"
done
if [ -n "$missing" ]; then
	echo "missing:$missing; on Debian: apt install asciinema npm graphviz" >&2
	exit 1
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p docs/images

dot -Tsvg internal/tools/picture/lifecycle.dot >docs/images/lifecycle.svg

npm install --silent --no-save --no-audit --no-fund --prefix "$tmp" svg-term-cli@2.1.1
go build -o "$tmp/demo" ./internal/tools/demo
echo "recording the demo, half a minute"
asciinema rec --quiet --cols 116 --rows 32 --command "$tmp/demo" "$tmp/demo.cast" </dev/null
grep -q 'That took' "$tmp/demo.cast" || {
	echo "the demo did not come to its end:" >&2
	cat "$tmp/demo.cast" >&2
	exit 1
}

# draw draws a part of the recording.
draw() {
	awk -v "from=$2" -v "until=$3" -f internal/tools/picture/retime.awk "$tmp/demo.cast" >"$tmp/retimed.cast"
	"$tmp/node_modules/.bin/svg-term" --in "$tmp/retimed.cast" --out "$tmp/demo.svg" --window --no-cursor
	# Where nothing moves, or must not, the last frame is shown. svgo has renamed the keyframes.
	name=$(sed -n 's/.*@keyframes \([a-z]*\){.*/\1/p' "$tmp/demo.svg")
	last=$(sed -n 's/.*to{transform:translateX(\(-[0-9]*\)px)}}.*/\1/p' "$tmp/demo.svg")
	sed "s|<g style=\"animation-duration:\([0-9.]*s\);[^\"]*\">|<g class=\"play\" transform=\"translate(${last:?})\">|
		s|</style>|@media (prefers-reduced-motion:no-preference){.play{animation:${name:?} 15s steps(1,end) infinite}}</style>|" \
		"$tmp/demo.svg" >"docs/images/$1.svg"
	grep -q 'class="play" transform' "docs/images/$1.svg"
}
draw demo 'Plan: shows' 'Nothing has changed'
draw killed 'One more release' 'What reached'

ls -l docs/images
