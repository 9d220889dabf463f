// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package demo

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

func TestTrafficMet(t *testing.T) {
	tests := map[string]struct {
		want traffic
		sent simulator.Counts
		met  bool
	}{
		"nothing, as expected":   {traffic{}, simulator.Counts{}, true},
		"as expected":            {traffic{create: 1, get: true}, simulator.Counts{Create: 1, Get: 7}, true},
		"a create too many":      {traffic{create: 1, get: true}, simulator.Counts{Create: 2, Get: 7}, false},
		"a create too few":       {traffic{create: 1, get: true}, simulator.Counts{Get: 7}, false},
		"a message too many":     {traffic{get: true}, simulator.Counts{Message: 1, Get: 7}, false},
		"no get":                 {traffic{create: 1, get: true}, simulator.Counts{Create: 1}, false},
		"an unexpected get":      {traffic{}, simulator.Counts{Get: 1}, false},
		"something else besides": {traffic{create: 1, get: true}, simulator.Counts{Create: 1, Get: 7, Other: 1}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.want.met(test.sent); got != test.met {
				t.Errorf("met: %t, want %t", got, test.met)
			}
		})
	}
}

func TestReport(t *testing.T) {
	r := report{rows: []row{
		{"plan", traffic{}, simulator.Counts{}},
		{"apply", traffic{create: 1, get: true}, simulator.Counts{Create: 2, Get: 14}},
		{"more", traffic{message: 1, get: true}, simulator.Counts{Message: 1, Get: 3}},
	}}
	r.check(true, "the id is %s", "job_1")
	r.check(false, "the state is empty")

	var shown bytes.Buffer
	r.show(screen{Writer: &shown})
	want := `
== What reached the service, beside what was expected
                                POST create       POST message      GET
                                sent  expected    sent  expected    sent  expected
plan                               0  0              0  0              0  0           ok
apply                              2  1              0  0             14  at least 1  WRONG
more                               0  0              1  1              3  at least 1  ok
all                                2  1              1  1             17

ok  the id is job_1
WRONG  the state is empty
`
	if diff := cmp.Diff(want, shown.String()); diff != "" {
		t.Error(diff)
	}
}

func TestPlus(t *testing.T) {
	a, b := simulator.Counts{Create: 10, Message: 20, Get: 30, Other: 40}, simulator.Counts{Create: 1, Message: 2, Get: 3, Other: 4}
	if got, want := plus(a, b, -1), (simulator.Counts{Create: 9, Message: 18, Get: 27, Other: 36}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestReportIsOK(t *testing.T) {
	good, bad := row{name: "plan"}, row{name: "apply", want: traffic{create: 1}}
	for name, test := range map[string]struct {
		report report
		want   bool
	}{
		"all is well": {report{rows: []row{good}, checks: []check{{"a", true}}}, true},
		"a row":       {report{rows: []row{good, bad}, checks: []check{{"a", true}}}, false},
		"a check":     {report{rows: []row{good}, checks: []check{{"a", true}, {"b", false}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.report.ok(); got != test.want {
				t.Errorf("ok: %t, want %t", got, test.want)
			}
		})
	}
}

func TestScreen(t *testing.T) {
	for _, color := range []bool{false, true} {
		var shown bytes.Buffer
		s := screen{&shown, color}
		s.headline("1/2")
		s.command("tofu", []string{"apply", "-auto-approve", "-var", "prompt=It's new", ""})
		want := "\n== 1/2\n$ tofu apply -auto-approve -var prompt='It'\\''s new' ''\n"
		if color {
			want = "\n\x1b[1m\x1b[36m== 1/2\x1b[0m\n\x1b[1m$ tofu apply -auto-approve -var prompt='It'\\''s new' ''\x1b[0m\n"
		}
		if diff := cmp.Diff(want, shown.String()); diff != "" {
			t.Error(diff)
		}
	}
}
