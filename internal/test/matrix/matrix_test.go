// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"slices"
	"testing"
	"testing/synctest"
)

// TestMatrix is the list of what the provider survives. After every row the
// key is searched for in all that it has written.
func TestMatrix(t *testing.T) {
	t.Setenv("TF_LOG", "TRACE")
	for _, r := range slices.Concat(createRows(), waitRows(), recordRows(), readRows(), messageRows(), inputRows(), unknownRows(),
		configRows(), journalRows(), bucketRows()) {
		t.Run(r.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			if r.clock {
				synctest.Test(t, func(t *testing.T) { r.Run(t, dir) })
			} else {
				r.Run(t, dir)
			}
		})
	}
}
