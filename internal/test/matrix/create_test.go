// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-log/tflogtest"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// createRows are faults of the connection to the service, and of its response to a create.
func createRows() []Row {
	// A deadline that has passed makes a dialer fail at once as its own timeout does.
	_, dialTimeout := (&net.Dialer{Deadline: time.Unix(1, 0)}).Dial("tcp", "127.0.0.1:1")
	rows := []Row{
		// Red without: the fields of the log, and Printable in it.
		{name: "C01_logged", clock: true, Test: func(m *Matrix) {
			m.FailDials(errors.New("no\x1b[2J route"))
			time.AfterFunc(time.Nanosecond, func() { m.FailDials(nil) })
			m.OK(m.Run(noWait()))
			entries, err := tflogtest.MultilineJSONDecode(strings.NewReader(m.logged()))
			if err != nil {
				m.Fatal(err)
			}
			var got []attrs
			for _, e := range entries {
				if e["@message"] == "called the agent service" {
					maps.DeleteFunc(e, func(name string, _ any) bool { return name[0] == '@' || strings.HasPrefix(name, "tf_") })
					got = append(got, e)
				}
			}
			post := attrs{"operation": "create job", "method": "POST", "url": m.URL + "/v2/agent/proj_1/job", "request_bytes": 29.0, "duration_ms": 0.0}
			want := []attrs{
				fakecli.With(post, attrs{"status": 0.0, "response_bytes": 0.0, "error": `no connection to the service: no\u001b[2J route`}),
				fakecli.With(post, attrs{"status": 201.0, "response_bytes": 225.0, "job_status": "active"}), // ids are of one length
			}
			if diff := cmp.Diff(want, got); diff != "" {
				m.Errorf("log (-want +got):\n%s", diff)
			}
		}},
		// Red without: the loop in Client.post that sends again what was not sent;
		// DeadlineExceeded in causeOf (a dialer's timeout passes for that of the resource).
		{name: "C01_dial_timeout_until_deadline", clock: true, Test: func(m *Matrix) {
			m.FailDials(dialTimeout)
			m.notSentUntilDeadline("i/o timeout")
			m.FailDials(nil)
			m.created(Job1())
			m.WantPosts(1, 0)
		}},
		// Red without: httptrace's GotConn as the mark of "reached" (every failure unknown).
		{name: "C01_tls_handshake_reset_until_deadline", clock: true, Serve: faultserver.Options{TLS: true}, Test: func(m *Matrix) {
			m.OnConnect(slices.Repeat([]func(net.Conn){faultserver.ResetEarly}, 200)...)
			m.notSentUntilDeadline("EOF")
		}},
	}
	for _, c := range []struct {
		name, word string
		play       faultserver.Play
		took       time.Duration // on a fake clock; 0: without one
	}{
		// Red without: the class "unknown outcome" for a POST without an answer (taken as not sent).
		{name: "C03_reset_after_effect", word: "No usable response", play: faultserver.Effect(faultserver.Reset)},
		// Red without: 5xx as an unknown outcome in classifyPost (taken as refused, or sent again).
		{name: "C04_503", word: "The service responded with 503", play: faultserver.Answer(503, `{"error":"dial tcp 192.0.2.1:443: i/o timeout"}`, "Retry-After: 1")},
		// Red without: StatusSeeOther in refuses.
		{name: "C04_303", word: "The service responded with 303", play: faultserver.Effect(faultserver.Answer(303, "", "Location: /v2/agent/proj_1/job/job_1"))},
		// Red without: a 2xx that is no whole record as an unknown outcome in classifyPost.
		{name: "C05_truncated_body", word: "no usable response", play: faultserver.Truncated(201, JobJSON(nil), 20)},
		// Red without: the request timeout covering the body (the row would end after the whole answer).
		{name: "C13_slow_loris", word: "o complete response within the request timeout", play: faultserver.Slow(201, JobJSON(nil), 9*time.Second), took: time.Minute},
	} {
		rows = append(rows, Row{name: c.name, clock: c.took > 0, Test: func(m *Matrix) {
			m.Script(faultserver.Create, c.play)
			start := time.Now()
			diags := m.Run(Job1())
			if c.took > 0 {
				m.wantTook(start, c.took, c.took)
			}
			m.unknownOutcome(diags, 1, c.word)
		}})
	}
	return rows
}

// notSentUntilDeadline runs a create that is tried again until its deadline.
func (m *Matrix) notSentUntilDeadline(word string) {
	m.Helper()
	start := time.Now()
	m.notSent(m.Run(Job1()), "No connection to the service: ", word, "Check base_url, the network")
	m.wantTook(start, 45*time.Second, time.Minute)
	if m.Dials() < 5 {
		m.Errorf("tried %d times only", m.Dials())
	}
}

// unknownOutcome asserts that a create failed with an unknown outcome after the
// service has read posts POSTs, and that the next apply sends exactly one.
func (m *Matrix) unknownOutcome(diags []*tfprotov6.Diagnostic, posts int, words ...string) {
	m.Helper()
	m.wantDiags(diags, outcomeUnknown)
	m.wantWords(append(words,
		"The prompt was sent to project proj_1, and no response shows whether a job was started. ",
		"Look for the job in the service's dashboard. If it is there, import it and apply, which sends nothing: ",
		"terraform (or tofu) import ADDRESS proj_1/JOB_ID")...)
	m.wantEnd("", posts, 0)
	m.wantGets(0)
	m.OK(m.Run(Job1()))
	m.wantEnd("completed", posts+1, 0)
}
