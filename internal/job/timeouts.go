// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// checkTimeouts refuses timeouts that leave no time at all. Texts that are no
// duration are refused by the attributes themselves.
func checkTimeouts(ctx context.Context, config tfsdk.Config, diags *diag.Diagnostics, names ...string) {
	for _, name := range names {
		var text types.String
		at := path.Root("timeouts").AtName(name)
		diags.Append(config.GetAttribute(ctx, at, &text)...)
		if d, err := time.ParseDuration(text.ValueString()); err == nil && d <= 0 {
			diags.AddAttributeError(at, "Impossible timeout",
				fmt.Sprintf("%s leaves no time for anything: give a duration above zero, for example \"30m\".", wording.Quote(text.ValueString())))
		}
	}
}
