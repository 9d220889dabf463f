// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-log/tflogtest"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// unknownOutcome asserts U for a create of which the service has read posts
// POSTs, and that the next apply sends exactly one.
func (m *Matrix) unknownOutcome(diags []*tfprotov6.Diagnostic, posts int, words ...string) {
	m.Helper()
	m.wantDiags(diags, createFailed)
	m.wantWords(diags, append(words,
		"no answer tells its outcome: a job may have been started. It will not be sent again by itself.",
		"Look for the job at the service before you apply again, because applying again sends the prompt again.",
		"terraform (or tofu) import ADDRESS proj_1/JOB_ID")...)
	m.wantNoState()
	m.WantPosts(posts, 0)
	if gets := m.Count(faultserver.Get); gets != 0 {
		m.Errorf("%d GETs of a job that has no id", gets)
	}
	m.OK(m.Run(Job1()))
	m.WantState("completed")
	m.WantPosts(posts+1, 0)
}

// refused asserts F for a create: the service has read one POST and said no.
func (m *Matrix) refused(diags []*tfprotov6.Diagnostic, words ...string) {
	m.Helper()
	m.wantDiags(diags, createFailed)
	m.wantWords(diags, append(words, "The service refused the request, so no job was started.")...)
	m.wantNoState()
	m.WantPosts(1, 0)
	if jobs := m.Sim.Jobs(); len(jobs) != 0 {
		m.Errorf("the service has %d jobs", len(jobs))
	}
}

func createRows() []Row {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	unknownHost := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "agent.invalid", IsNotFound: true}}
	// A deadline that has passed makes a dialer fail at once as its own timeout does.
	_, dialTimeout := (&net.Dialer{Deadline: time.Unix(1, 0)}).Dial("tcp", "127.0.0.1:1")
	untilDeadline := func(m *Matrix, word string) {
		start := time.Now()
		m.NotSent(m.Run(Job1()), "No connection to the service: ", word, "Check base_url and the network")
		if took := time.Since(start); took < 45*time.Second || took > time.Minute {
			m.Errorf("gave up after %s", took)
		}
		if m.Dials() < 5 {
			m.Errorf("tried %d times only", m.Dials())
		}
	}
	rows := []Row{
		// Red without: the loop in Client.post that sends again what was not sent.
		{name: "C01_connection_refused_until_deadline", clock: true, Test: func(m *Matrix) {
			m.FailDials(refused)
			untilDeadline(m, "connection refused")
			m.FailDials(nil)
			m.OK(m.Run(Job1()))
			m.WantPosts(1, 0)
		}},
		// Red without: the same.
		{name: "C01_dns_failure_until_deadline", clock: true, Test: func(m *Matrix) {
			m.FailDials(unknownHost)
			untilDeadline(m, "no such host")
		}},
		// Red without: DeadlineExceeded in causeOf (a dialer's timeout passes for that of the resource).
		{name: "C01_dial_timeout_until_deadline", clock: true, Test: func(m *Matrix) {
			m.FailDials(dialTimeout)
			untilDeadline(m, "i/o timeout")
		}},
		// Red without: httptrace's GotConn as the mark of "reached" (every failure unknown).
		{name: "C01_tls_handshake_reset_until_deadline", clock: true, Serve: faultserver.Options{Certificate: faultserver.GoodCertificate},
			Test: func(m *Matrix) {
				m.OnConnect(slices.Repeat([]func(net.Conn){faultserver.ResetEarly}, 200)...)
				untilDeadline(m, "closed pipe")
			}},
		// Red without: the loop in Client.post.
		{name: "C01_refused_then_accepted", clock: true, Test: func(m *Matrix) {
			m.FailDials(refused, unknownHost, refused, nil)
			m.OK(m.Run(Job1()))
			m.WantState("completed")
			m.WantPosts(1, 0)
		}},
		// Red without: the fields of the log, and Printable in it.
		{name: "C01_logged", clock: true, Test: func(m *Matrix) {
			m.FailDials(errors.New("no\x1b[2J route"), nil)
			m.OK(m.Run(fakecli.With(Job1(), attrs{"wait": attrs{"enabled": false}})))
			entries, err := tflogtest.MultilineJSONDecode(strings.NewReader(m.log.String()))
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
				fakecli.With(post, attrs{"status": 0.0, "answer_bytes": 0.0, "error": `no connection to the service: no\u001b[2J route`}),
				fakecli.With(post, attrs{"status": 201.0, "answer_bytes": 206.0}), // ids are of one length
			}
			if diff := cmp.Diff(want, got); diff != "" {
				m.Errorf("log (-want +got):\n%s", diff)
			}
		}},
		// Red without: the loop in Client.post; with real sockets and RST.
		{name: "C01_tls_handshake_reset_then_accepted", Serve: faultserver.Options{Certificate: faultserver.GoodCertificate},
			Test: func(m *Matrix) {
				m.OnConnect(faultserver.ResetEarly)
				m.OK(m.Run(Job1()))
				m.WantState("completed")
				m.WantPosts(1, 0)
			}},
		// Red without: the loop in Client.post; nothing listens at first.
		{name: "C01_refused_by_the_system_then_accepted", Provider: attrs{"base_url": "http://127.0.0.1:1"}, Test: func(m *Matrix) {
			address := faultserver.FreeAddress(m)
			m.config["base_url"] = "http://" + address
			m.OK(m.connect())
			done := make(chan *faultserver.Server)
			go func() {
				time.Sleep(50 * time.Millisecond)
				done <- faultserver.New(m, m.Sim, faultserver.Options{Address: address})
			}()
			m.OK(m.Run(Job1()))
			m.WantState("completed")
			if late := <-done; late.Count(faultserver.Create) != 1 {
				m.Errorf("%d POSTs", late.Count(faultserver.Create))
			}
		}},

		// Red without: the class "unknown outcome" for a POST without an answer (taken as not sent).
		{name: "C03_reset_after_request", Test: func(m *Matrix) {
			m.Script(faultserver.Create, faultserver.Reset)
			m.unknownOutcome(m.Run(Job1()), 1, "connection reset")
		}},
		{name: "C03_reset_after_effect", Test: func(m *Matrix) {
			m.Script(faultserver.Create, faultserver.Effect(faultserver.Reset))
			m.unknownOutcome(m.Run(Job1()), 1, "connection reset")
		}},
		{name: "C03_eof_after_request", Test: func(m *Matrix) {
			m.Script(faultserver.Create, faultserver.EOF)
			m.unknownOutcome(m.Run(Job1()), 1, "The connection was closed too early: EOF")
		}},
		{name: "C03_eof_in_header", Test: func(m *Matrix) {
			m.Script(faultserver.Create, faultserver.Raw("HTTP/1.1 201 Cre"))
			m.unknownOutcome(m.Run(Job1()), 1)
		}},
		{name: "C03_nonsense_that_echoes_the_key", Test: func(m *Matrix) {
			// Red without: maskError in Client.do.
			m.Script(faultserver.Create, faultserver.Raw("HTTP/1.1 201 Created\r\n"+harness.CanaryKey+"\r\n\r\n"))
			m.unknownOutcome(m.Run(Job1()), 1, "(sensitive)")
		}},
		// The service has read nothing, but nobody here can know that.
		{name: "C03_reset_before_request", Test: func(m *Matrix) {
			m.OnConnect(faultserver.ResetEarly)
			m.unknownOutcome(m.Run(Job1()), 0)
		}},
		// Red without: the request timeout in Client.exchange (the row would hang in the bubble).
		{name: "C03_header_timeout", clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Create, faultserver.Stall)
			start := time.Now()
			diags := m.Run(Job1())
			if took := time.Since(start); took != time.Minute {
				m.Errorf("gave up after %s", took)
			}
			m.unknownOutcome(diags, 1, "No complete answer within the request timeout")
		}},

		// Red when classifyPost demands 201.
		{name: "C07_200_instead_of_201", Test: func(m *Matrix) {
			m.Script(faultserver.Create, func(x *faultserver.Exchange) {
				job := m.Sim.Create(harness.Project, "Add a quickstart")
				faultserver.Answer(200, JobJSON(attrs{"id": job.ID}))(x)
			})
			m.OK(m.Run(Job1()))
			m.WantState("completed")
			m.WantPosts(1, 0)
		}},
	}
	// Red without: 5xx as an unknown outcome in classifyPost (taken as refused, or sent again).
	for _, status := range []int{500, 502, 503, 504} {
		rows = append(rows, Row{name: fmt.Sprintf("C04_status_%d", status), Test: func(m *Matrix) {
			m.Script(faultserver.Create, faultserver.Answer(status, `{"error":"try later"}`, "Retry-After: 1"))
			m.unknownOutcome(m.Run(Job1()), 1, fmt.Sprintf("The service answered %d", status), "try later")
		}})
	}
	return rows
}
