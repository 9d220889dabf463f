// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
)

// A later version finds what an earlier one has recorded, or it would send that again.
// So an argument that is added later is part of a key only where it is set.
func TestKeys_acrossVersions(t *testing.T) {
	job := jobModel{
		Prompt: types.StringValue("prompt"), ProjectID: types.StringValue("proj"), Triggers: types.MapNull(types.StringType),
		jobRecord: jobRecord{ID: types.StringValue("job")},
	}
	withTriggers := job
	withTriggers.Triggers = types.MapValueMust(types.StringType, map[string]attr.Value{"b": types.StringValue("1"), "a": types.StringNull()})
	want := []journal.Key{
		"create-n53jmsndbedyj47jeavi",
		"create-3yxzkpcrflhoqzzcljeb",
		"message-w4uds6r5vjaxkmuhktpt-jgxxwrsjr543cfrnaich",
	}
	got := []journal.Key{createKey(t.Context(), &job), createKey(t.Context(), &withTriggers), messageKey(&job)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys of earlier versions (-) and now (+):\n%s", diff)
	}
}
