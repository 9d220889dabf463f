// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package demo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// traffic is what a step should send: that many POSTs, and at least one GET or none.
type traffic struct {
	create, message int
	get             bool
}

func (t traffic) met(sent simulator.Counts) bool {
	return sent.Create == t.create && sent.Message == t.message && (sent.Get > 0) == t.get && sent.Other == 0
}

// row is what one step sent, beside what it should have.
type row struct {
	name string
	want traffic
	sent simulator.Counts
}

// check is something else that was looked at.
type check struct {
	name string
	ok   bool
}

// report collects what the demo has found out.
type report struct {
	rows   []row
	checks []check
}

func (r *report) check(ok bool, format string, args ...any) {
	r.checks = append(r.checks, check{fmt.Sprintf(format, args...), ok})
}

// ok tells whether everything was as expected.
func (r *report) ok() bool {
	return !slices.ContainsFunc(r.rows, func(r row) bool { return !r.want.met(r.sent) }) &&
		!slices.ContainsFunc(r.checks, func(c check) bool { return !c.ok })
}

// show prints the table and the list.
func (r *report) show(s screen) {
	s.headline("What reached the service, beside what was expected")
	s.cells("", "POST create", "", "POST message", "", "GET", "", "")
	s.cells("", "sent", "expected", "sent", "expected", "sent", "expected", "")
	all := row{name: "all"}
	for _, row := range r.rows {
		gets := "0"
		if row.want.get {
			gets = "at least 1"
		}
		s.counts(row, gets, s.verdict(row.want.met(row.sent)))
		all.want.create += row.want.create
		all.want.message += row.want.message
		all.sent = plus(all.sent, row.sent, 1)
	}
	s.counts(all, "", "")
	fmt.Fprintln(s)
	for _, check := range r.checks {
		fmt.Fprintf(s, "%s  %s\n", s.verdict(check.ok), check.name)
	}
}

// counts prints a row of the table.
func (s screen) counts(r row, gets, verdict string) {
	s.cells(r.name,
		fmt.Sprintf("%4d", r.sent.Create), strconv.Itoa(r.want.create),
		fmt.Sprintf("%4d", r.sent.Message), strconv.Itoa(r.want.message),
		fmt.Sprintf("%4d", r.sent.Get), gets, verdict)
}

// cells prints a line of the table: a name, three pairs, and a verdict.
func (s screen) cells(name, create, wantCreate, message, wantMessage, get, wantGet, verdict string) {
	pair := func(sent, want string) string { return fmt.Sprintf("%-18s", fmt.Sprintf("%-6s%s", sent, want)) }
	line := fmt.Sprintf("%-32s%s%s%s%s", name, pair(create, wantCreate), pair(message, wantMessage), pair(get, wantGet), verdict)
	fmt.Fprintln(s, strings.TrimRight(line, " "))
}

// plus adds n times what is in b.
func plus(a, b simulator.Counts, n int) simulator.Counts {
	a.Create += n * b.Create
	a.Message += n * b.Message
	a.Get += n * b.Get
	a.Other += n * b.Other
	return a
}
