// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package plugin

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
)

// A process ends once the outcome of its POSTs is recorded, however its CLI ends it, or after the longest time.
func TestEnd_drains(t *testing.T) {
	for _, test := range []struct {
		name    string
		gone    bool
		longest time.Duration
		want    error
	}{
		{"shutdown", false, shutdownDrain, nil},
		{"CLI is gone", true, cliGoneDrain, errCLIGone},
	} {
		for took, want := range map[time.Duration]time.Duration{
			0: 0, test.longest / 2: test.longest / 2, test.longest * 2: test.longest,
		} {
			synctest.Test(t, func(t *testing.T) {
				process := &cli.Process{CLIEnded: func() bool { return test.gone }}
				time.AfterFunc(took, process.Hold())
				served := make(chan error, 1)
				if !test.gone {
					served <- nil
				}
				began := time.Now()
				err := End(t.Context(), process, served)
				if got := time.Since(began); !errors.Is(err, test.want) || got < want || got > want+parentCheck {
					t.Errorf("%s: with a response after %v, it ends after %v with %v; want %v and %v", test.name, took, got, err, want, test.want)
				}
				time.Sleep(took) // until the response is there
			})
		}
	}
}
