// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
)

func TestHash(t *testing.T) {
	seen := map[string]bool{}
	for _, parts := range [][]string{nil, {""}, {"", ""}, {"a", "bc"}, {"ab", "c"}, {"abc"}, {"a", "", "bc"}} {
		hash := Hash(parts...)
		if store.CheckKey(hash) != nil || len(hash) != 20 || seen[hash] {
			t.Errorf("%q: %s", parts, hash)
		}
		seen[hash] = true
	}
}
