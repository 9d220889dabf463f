// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultmix

import (
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

// played counts and notes a fault. The caller holds o.mu.
func (o *order) played(row string) {
	o.sum.fault(row)
	o.history = append(o.history, fmt.Sprintf("%9.3fs %s", time.Since(o.start).Seconds(), row))
}

// note keeps what the CLI would have printed.
func (o *order) note(call string, diags []*tfprotov6.Diagnostic) {
	shown := fakecli.Text(diags)
	fmt.Fprintln(o.watch, shown)
	for _, d := range diags {
		summary, _, _ := strings.Cut(d.Detail, "\n")
		call += fmt.Sprintf(" | %s: %s: %.200s", d.Severity, d.Summary, summary)
	}
	o.tell("%s | state: %v %v", call, o.core.Get("id"), o.core.Get("status"))
}

func (o *order) tell(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	line := fmt.Sprintf("%9.3fs ", time.Since(o.start).Seconds()) + fmt.Sprintf(format, args...)
	o.history = append(o.history, line)
}

// fail counts what must not happen, and shows the first time of each order.
func (o *order) fail(what wrong, format string, args ...any) {
	o.sum.wrong(what, 1)
	o.tell("WRONG: %s: %s", what, fmt.Sprintf(format, args...))
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failures++; o.failures == 1 {
		o.Errorf("%s %s: %s\nwhat was sent and said:\n  %s", o.name, what, fmt.Sprintf(format, args...),
			strings.Join(o.history, "\n  "))
	}
}
