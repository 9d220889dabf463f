# Copyright (c) the terraform-provider-agent authors
# SPDX-License-Identifier: MPL-2.0

# Retimes a part of a recording of asciinema (version 2) for readers: from the step whose headline matches "from" to the one that
# matches "until". Of an init it shows the command alone, and of an apply neither the plan, which is longer than the screen, nor the
# script of a provisioner, which is wider. No wait is longer than 1 s, each step stays for 1.5 s and the end for 4 s, all scaled down to
# 15 s in total.
NR == 1 {
	sub(/, "idle_time_limit": [0-9.]*/, "")
	sub(/, "env": \{[^}]*\}/, "")
	print
	next
}
{
	comma = index($0, ",")
	at = substr($0, 2, comma - 2)
	event = substr($0, comma)
	sub(/== [0-9]+\/[0-9]+  /, "== ", event)
	if (event ~ "== " from)
		shown = 1
	ends = shown && match(event, "(\\\\u001b[^m]*m)*== " until)
	if (ends)
		event = substr(event, 1, RSTART - 1) "\"]" # the end of the step before may be in the same event
	if (hides && match(event, /(\\u001b[^m]*m)*(== |[a-z_.]+: (Creating|Destroying)\.\.\.)/)) {
		hides = 0
		event = ", \"o\", \"" (event ~ /== / ? "\\r\\n" : "") substr(event, RSTART)
	}
	gsub(/\\r\\n/, "\n", event)
	gsub(/[^\n"]*\(local-exec\):[^\n]*Executing:[^\n]*\n/, "", event)
	gsub(/\n/, "\\r\\n", event)
	gap = at - last > 1 ? 1 : at - last
	last = at
	if (!shown || hides)
		next
	hides = event ~ /\$ (terraform|tofu) (init|apply)/
	if (n && match(event, /(\\u001b[^m]*m)*== /)) { # the end of the step before may be in the same event
		emit(substr(event, 1, RSTART - 1) "\"]", gap)
		emit(", \"o\", \"" substr(event, RSTART), 1.5)
	} else
		emit(event, gap)
	if (ends)
		shown = 0
}
function emit(event, pause) {
	if (n)
		now += pause
	times[n] = now
	events[n++] = event
}
END {
	scale = now > 11 ? 11 / now : 1
	for (i = 0; i < n; i++)
		printf "[%.6f%s\n", times[i] * scale, events[i]
	printf "[%.6f, \"o\", \"\\u001b[0m\"]\n", now * scale + 4
}
