// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// A later version finds what an earlier one has recorded, or it would send that again. So an argument
// that is added later is part of a key only where it is set. Keys without triggers: internal/test/frozen.
func TestCreateKey_acrossVersions(t *testing.T) {
	job := jobModel{
		Prompt: types.StringValue("prompt"), ProjectID: types.StringValue("proj"),
		Triggers: types.MapValueMust(types.StringType, map[string]attr.Value{"b": types.StringValue("1"), "a": types.StringNull()}),
	}
	if key := createKey(t.Context(), &job); key != "create-3yxzkpcrflhoqzzcljeb" {
		t.Errorf("the key of earlier versions is now %s", key)
	}
}
