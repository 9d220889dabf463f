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
	j, err := journal.NewProcess(journal.ThisHost(), nil).Open(journal.Options{Location: journal.Location{Folder: t.TempDir()}, Scope: "scope"})
	if err != nil {
		t.Fatal(err)
	}
	job := jobModel{
		Prompt: types.StringValue("prompt"), ProjectID: types.StringValue("proj"), Triggers: types.MapNull(types.StringType),
		jobRecord: jobRecord{ID: types.StringValue("job")},
	}
	withTriggers := job
	withTriggers.Triggers = types.MapValueMust(types.StringType, map[string]attr.Value{"b": types.StringValue("1"), "a": types.StringNull()})
	want := []journal.Key{
		"create-7b683a8f50fb91b67b3b714d1cb18273676b837195c9babc82a9a0a262f82fb4",
		"create-59e1fd0a0fda734478090a9e96d10e18e08c36d2cda85298480a44ff2eaea857",
		"message-456abaa584b93f5aff1b8b09cd5a7131f08622157d735f3d5791f8badbb5a9c3",
	}
	got := []journal.Key{createKey(t.Context(), j, &job), createKey(t.Context(), j, &withTriggers), messageKey(j, &job)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys of earlier versions (-) and now (+):\n%s", diff)
	}
}
