# Copyright (c) the terraform-provider-agent authors
# SPDX-License-Identifier: MPL-2.0

# Retimes a recording of asciinema (version 2) for readers: no wait is longer
# than 1.5 s, each step stays for 2 s, the end for 8 s.
NR == 1 {
	sub(/, "idle_time_limit": [0-9.]*/, "")
	sub(/, "env": \{[^}]*\}/, "")
	print
	next
}
{
	comma = index($0, ",")
	at = substr($0, 2, comma - 2)
	rest = substr($0, comma)
	gap = at - last
	last = at
	if (gap > 1.5)
		gap = 1.5
	if (rest ~ /== [0-9]+\/[0-9]+  |== What reached/)
		gap += 2
	now += gap
	printf "[%.6f%s\n", now, rest
}
END {
	printf "[%.6f, \"o\", \"\\u001b[0m\"]\n", now + 8
}
