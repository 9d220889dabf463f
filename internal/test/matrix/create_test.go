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
	"github.com/hashicorp/terraform-plugin-log/tflogtest"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// createRows are faults of the connection to the service, and of its response to a create.
func createRows() []Row {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	unknownHost := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "agent.invalid", IsNotFound: true}}
	// A deadline that has passed makes a dialer fail at once as its own timeout does.
	_, dialTimeout := (&net.Dialer{Deadline: time.Unix(1, 0)}).Dial("tcp", "127.0.0.1:1")
	tls := faultserver.Options{Certificate: faultserver.GoodCertificate}
	succeeds := func(m *Matrix) {
		m.OK(m.Run(Job1()))
		m.wantEnd("completed", 1, 0)
	}
	rows := []Row{
		// Red without: the loop in Client.post.
		{name: "C01_refused_then_accepted", clock: true, Test: func(m *Matrix) {
			m.FailDials(refused, unknownHost, refused, nil)
			succeeds(m)
		}},
		// Red without: the fields of the log, and Printable in it.
		{name: "C01_logged", clock: true, Test: func(m *Matrix) {
			m.FailDials(errors.New("no\x1b[2J route"), nil)
			m.OK(m.Run(noWait()))
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
		{name: "C01_tls_handshake_reset_then_accepted", Serve: tls, Test: func(m *Matrix) {
			m.OnConnect(faultserver.ResetEarly)
			succeeds(m)
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
		// The service has read nothing, but nobody here can know that.
		{name: "C03_reset_before_request", Test: func(m *Matrix) {
			m.OnConnect(faultserver.ResetEarly)
			m.unknownOutcome(m.Run(Job1()), 0)
		}},
		// Red when classifyPost demands 201.
		{name: "C07_200_instead_of_201", Test: func(m *Matrix) {
			m.Script(faultserver.Create, m.createdAs(200, nil))
			succeeds(m)
		}},
	}
	for _, c := range []struct {
		name, word string
		dial       error
		serve      faultserver.Options
	}{
		// Red without: the loop in Client.post that sends again what was not sent.
		{name: "connection_refused", word: "connection refused", dial: refused},
		{name: "dns_failure", word: "no such host", dial: unknownHost},
		// Red without: DeadlineExceeded in causeOf (a dialer's timeout passes for that of the resource).
		{name: "dial_timeout", word: "i/o timeout", dial: dialTimeout},
		// Red without: httptrace's GotConn as the mark of "reached" (every failure unknown).
		{name: "tls_handshake_reset", word: "closed pipe", serve: tls},
	} {
		rows = append(rows, Row{name: "C01_" + c.name + "_until_deadline", clock: true, Serve: c.serve, Test: func(m *Matrix) {
			m.FailDials(c.dial)
			if c.dial == nil {
				m.OnConnect(slices.Repeat([]func(net.Conn){faultserver.ResetEarly}, 200)...)
			}
			start := time.Now()
			m.notSent(m.Run(Job1()), "No connection to the service: ", c.word, "Check base_url, the network")
			m.wantTook(start, 45*time.Second, time.Minute)
			if m.Dials() < 5 {
				m.Errorf("tried %d times only", m.Dials())
			}
			if c.dial != nil {
				m.FailDials(nil)
				succeeds(m)
			}
		}})
	}
	for _, c := range []struct {
		name, word string
		play       faultserver.Play
	}{
		// Red without: the class "unknown outcome" for a POST without an answer (taken as not sent).
		{"reset_after_request", "connection reset", faultserver.Reset},
		{"reset_after_effect", "connection reset", faultserver.Effect(faultserver.Reset)},
		{"eof_after_request", "The connection was closed too early: EOF", faultserver.EOF},
		{"eof_in_header", "", faultserver.Raw("HTTP/1.1 201 Cre")},
		// Red without: maskError in Client.do.
		{"nonsense_that_echoes_the_key", "(sensitive)", faultserver.Raw("HTTP/1.1 201 Created\r\n" + harness.CanaryKey + "\r\n\r\n")},
	} {
		rows = append(rows, Row{name: "C03_" + c.name, Test: func(m *Matrix) {
			m.Script(faultserver.Create, c.play)
			m.unknownOutcome(m.Run(Job1()), 1, c.word)
		}})
	}
	// Red without: 5xx as an unknown outcome in classifyPost (taken as refused, or sent again).
	for _, status := range []int{500, 502, 503, 504} {
		rows = append(rows, Row{name: fmt.Sprintf("C04_status_%d", status), Test: func(m *Matrix) {
			m.Script(faultserver.Create, faultserver.Answer(status, `{"error":"try later"}`, "Retry-After: 1"))
			m.unknownOutcome(m.Run(Job1()), 1, fmt.Sprintf("The service responded with %d", status), "try later")
		}})
	}
	return rows
}
