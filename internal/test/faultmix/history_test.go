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

// played counts and notes a fault. The caller holds u.mu.
func (u *user) played(row string) {
	u.sum.fault(row)
	u.history = append(u.history, fmt.Sprintf("%9.3fs %s", time.Since(u.start).Seconds(), row))
}

// note keeps what the CLI would have printed.
func (u *user) note(call string, diags []*tfprotov6.Diagnostic) {
	shown := fakecli.Text(diags)
	fmt.Fprintln(u.watch, shown)
	for _, d := range diags {
		summary, _, _ := strings.Cut(d.Detail, "\n")
		call += fmt.Sprintf(" | %s: %s: %.200s", d.Severity, d.Summary, summary)
	}
	u.log("%s | state: %v %v", call, u.cli.Get("id"), u.cli.Get("status"))
}

func (u *user) log(format string, args ...any) {
	u.mu.Lock()
	defer u.mu.Unlock()
	line := fmt.Sprintf("%9.3fs ", time.Since(u.start).Seconds()) + fmt.Sprintf(format, args...)
	u.history = append(u.history, line)
}

// fail counts what must not happen, and shows the first time of each user.
func (u *user) fail(what, format string, args ...any) {
	u.sum.wrong(what, 1)
	u.log("WRONG: %s: %s", what, fmt.Sprintf(format, args...))
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.failures++; u.failures == 1 {
		u.Errorf("%s %s: %s\nwhat was sent and said:\n  %s", u.name, what, fmt.Sprintf(format, args...),
			strings.Join(u.history, "\n  "))
	}
}
