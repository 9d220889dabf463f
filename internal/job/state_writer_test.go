// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// A job that cannot be written after a POST is named, and nothing denies the POST.
func TestSave_failed(t *testing.T) {
	t.Parallel()
	var diags diag.Diagnostics
	job := jobModel{ProjectID: types.StringValue("proj_1"), Triggers: types.MapNull(types.StringType), jobRecord: jobRecord{ID: types.StringValue("job_1")}}
	stateWriter{state: &tfsdk.State{Schema: schema.Schema{}, Raw: tftypes.NewValue(tftypes.Object{}, nil)}, private: private{}, marks: new(marks), diags: &diags}.save(t.Context(), &job)
	if len(diags) != 2 { // the first one is the framework's
		t.Fatalf("diagnostics: %v", diags)
	}
	detail := diags[1].Detail()
	for _, want := range []string{"Job job_1 in project proj_1 could not be written to the state. ", "The prompt may have been sent", "https://github.com/agentjobs/terraform-provider-agent/issues"} {
		if !strings.Contains(detail, want) {
			t.Errorf("missing %q in:\n%s", want, detail)
		}
	}
}
