// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"strings"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

type (
	attrs   = fakecli.Attrs
	unknown = fakecli.Unknown
)

// stateName follows the folder of a journal: local states may share one.
const stateName = "?state=a"

// byPrompt lets a job go as its prompt says.
func byPrompt(prompt string, _ int) simulator.Script {
	switch {
	case strings.Contains(prompt, "fail"):
		return simulator.Script{Duration: 100 * time.Millisecond, Status: "failed"}
	case strings.Contains(prompt, "once"):
		return simulator.Script{Duration: time.Second, NoMessages: 409}
	case strings.Contains(prompt, "sole"):
		return simulator.Script{Duration: time.Second, NoMessages: 400}
	case strings.Contains(prompt, "slow"):
		return simulator.Script{Duration: time.Hour}
	case strings.Contains(prompt, "no status"):
		return simulator.Script{Duration: time.Second, Extra: attrs{"status": simulator.Omit{}}}
	case strings.Contains(prompt, "late link"):
		return simulator.Script{Duration: time.Second, LinkAfter: 5 * time.Second}
	case strings.Contains(prompt, "later link"):
		return simulator.Script{Duration: time.Second, LinkAfter: 30 * time.Second}
	case strings.Contains(prompt, "linked"):
		return simulator.Script{Duration: time.Second, Status: "archived", Extra: attrs{"prLink": "https://example.com/pull/1"}}
	case strings.Contains(prompt, "odd link"):
		return simulator.Script{Duration: time.Second, Extra: attrs{"prLink": "/pull/1"}}
	default:
		return simulator.Script{Duration: time.Second}
	}
}

// ended is a job that somebody else has started and that is over.
func ended(s *harness.Service) string {
	id := s.Create(harness.Project, "from elsewhere").ID
	s.SetStatus(id, "completed")
	return id
}
