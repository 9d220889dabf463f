// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// JobJSON is a whole record with fields laid over; simulator.Omit leaves one out.
func JobJSON(fields attrs) string {
	record := attrs{
		"id": "job_1", "status": "active", "model": "m", "prLink": nil, "archivedAt": nil,
		"source": attrs{"repository": "https://github.com/example/docs", "ref": "main"}, "createdAt": "2026-01-02T03:04:05.678Z",
	}
	maps.Copy(record, fields)
	maps.DeleteFunc(record, func(_ string, field any) bool { _, out := field.(simulator.Omit); return out })
	text, err := json.Marshal(record)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// shows answers with the record of the job that was asked for, fields laid over.
func shows(fields attrs) faultserver.Play {
	return func(x *faultserver.Exchange) {
		_, id, _ := strings.Cut(x.Request.URL.Path, "/job/")
		id, _, _ = strings.Cut(id, "/")
		faultserver.Answer(200, JobJSON(fakecli.With(attrs{"id": id}, fields)))(x)
	}
}

// Job1 is the configuration that most rows apply.
func Job1() attrs { return attrs{"prompt": "Add a quickstart"} }

// Job2 is Job1 with the prompt changed.
func Job2() attrs { return attrs{"prompt": "Add a tutorial"} }

// What heads the diagnostics of most rows.
const (
	createFailed = "ERROR: Agent job not created"
)
