// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package testmatrix

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	tests := map[string]struct {
		in   string
		want Result
		ok   bool
	}{
		"passed, with subtests": {
			in: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA/one"}
{"Action":"pass","Package":"p","Test":"TestA/two/deep"}
{"Action":"pass","Package":"p","Test":"TestA/two"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestB"}
{"Action":"pass","Package":"p"}`,
			want: Result{Passed: 3},
			ok:   true,
		},
		"skipped with a reason": {
			in: `{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:60: found 1.11\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:66: needs 1.12\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"pass","Package":"p"}`,
			want: Result{Skipped: []Skip{{"TestA", "needs 1.12"}, {"TestB", "no reason given"}}},
		},
		"failed": {
			in: `{"Action":"output","Package":"p","Test":"TestA/one","Output":"wrong\n"}
{"Action":"fail","Package":"p","Test":"TestA/one"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestB"}
{"Action":"fail","Package":"p"}`,
			want: Result{Passed: 1, Failed: 1, Failures: []string{"p \n", "p TestA\n", "p TestA/one\nwrong\n"}},
		},
		"failed after its subtests": {
			in: `{"Action":"pass","Package":"p","Test":"TestA/one"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}`,
			want: Result{Passed: 1, Failed: 1, Failures: []string{"p \n", "p TestA\n"}},
		},
		"cut off by a panic": {
			in: `{"Action":"output","Package":"p","Test":"TestA","Output":"panic: no\n"}
{"Action":"fail","Package":"p"}`,
			want: Result{Failed: 1, Failures: []string{"p \n", "p TestA\npanic: no\n"}},
		},
		"does not compile": {
			in: `{"ImportPath":"q","Action":"build-output","Output":"undefined: x\n"}
{"ImportPath":"q","Action":"build-fail"}
{"Action":"output","Package":"p","Output":"FAIL p [build failed]\n"}
{"Action":"fail","Package":"p","FailedBuild":"q"}`,
			want: Result{Failed: 1, Failures: []string{"building q \nundefined: x\n", "p \nFAIL p [build failed]\n"}},
		},
		"nothing ran": {in: "", want: Result{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := parse(test.in)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if got.OK() != test.ok {
				t.Errorf("OK is %t, want %t", got.OK(), test.ok)
			}
		})
	}
}
