// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"testing"
	"testing/synctest"
)

// TestMatrix is the list of what the provider survives. After every row the
// key is searched for in all that it has written.
func TestMatrix(t *testing.T) {
	t.Setenv("TF_LOG", "TRACE")
	for _, rows := range [][]Row{
		createRows(), answerRows(), limitRows(), redirectRows(), connectionRows(), proxyRows(),
		waitRows(), recordRows(), readRows(), messageRows(), pacingRows(), inputRows(), unknownRows(),
		crashRows(), configRows(), journalRows(), bucketRows(), hostRows(),
	} {
		for _, r := range rows {
			t.Run(r.name, func(t *testing.T) {
				data := t.TempDir()
				t.Setenv("TF_DATA_DIR", data)
				if r.clock {
					synctest.Test(t, func(t *testing.T) { r.Run(t, data) })
				} else {
					r.Run(t, data)
				}
			})
		}
	}
}
