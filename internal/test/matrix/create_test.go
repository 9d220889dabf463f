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
	"github.com/hashicorp/terraform-plugin-log/tflogtest"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// createRows are faults of the connection to the service, and of its response to a create.
func createRows() []Row {
	// A deadline that has passed makes a dialer fail at once as its own timeout does.
	_, dialTimeout := (&net.Dialer{Deadline: time.Unix(1, 0)}).Dial("tcp", "127.0.0.1:1")
	tls := faultserver.Options{Certificate: faultserver.GoodCertificate}
	rows := []Row{
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
				fakecli.With(post, attrs{"status": 0.0, "response_bytes": 0.0, "error": `no connection to the service: no\u001b[2J route`}),
				fakecli.With(post, attrs{"status": 201.0, "response_bytes": 225.0}), // ids are of one length
			}
			if diff := cmp.Diff(want, got); diff != "" {
				m.Errorf("log (-want +got):\n%s", diff)
			}
		}},
		// The service has read nothing, but nobody here can know that.
		{name: "C03_reset_before_request", Test: func(m *Matrix) {
			m.OnConnect(faultserver.ResetEarly)
			m.unknownOutcome(m.Run(Job1()), 0)
		}},
	}
	for _, c := range []struct {
		name, word string
		dial       error
		serve      faultserver.Options
	}{
		// Red without: the loop in Client.post that sends again what was not sent;
		// DeadlineExceeded in causeOf (a dialer's timeout passes for that of the resource).
		{name: "C01_dial_timeout_until_deadline", word: "i/o timeout", dial: dialTimeout},
		// Red without: httptrace's GotConn as the mark of "reached" (every failure unknown).
		{name: "C01_tls_handshake_reset_until_deadline", word: "closed pipe", serve: tls},
	} {
		rows = append(rows, Row{name: c.name, clock: true, Serve: c.serve, Test: func(m *Matrix) {
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
				m.OK(m.Run(Job1()))
				m.wantEnd("completed", 1, 0)
			}
		}})
	}
	for _, c := range []struct {
		name  string
		play  faultserver.Play
		words []string
	}{
		// Red without: the class "unknown outcome" for a POST without an answer (taken as not sent).
		{"C03_reset_after_effect", faultserver.Effect(faultserver.Reset), []string{"The connection broke before the response was complete"}},
		{"C03_eof_after_request", faultserver.EOF, nil},
		// Red without: 5xx and 408 as an unknown outcome in classifyPost (taken as refused, or sent again); ownWords.
		{"C04_status_503", faultserver.Answer(503, `{"error":"dial tcp 192.0.2.1:443: i/o timeout"}`, "Retry-After: 1"), []string{"The service responded with 503"}},
		{"C04_status_408", faultserver.Effect(faultserver.Answer(408, "stream timeout")), []string{"The service responded with 408"}},
		// Red without: a 2xx that is no whole record as an unknown outcome in classifyPost.
		{"C05_truncated_body", faultserver.Truncated(201, JobJSON(nil), 20), []string{"the connection broke before the response was complete"}},
		{"C05_html", faultserver.Answer(201, "<html>welcome</html>", "Content-Type: text/html"), []string{"the response is a web page, not the service's JSON"}},
		// Red without: ValidID in decodeJob.
		{"C06_id_with_escape", faultserver.Answer(201, JobJSON(attrs{"id": "job\x1b[2J"})), []string{"no usable job id"}},
	} {
		rows = append(rows, Row{name: c.name, Test: func(m *Matrix) {
			m.Script(faultserver.Create, c.play)
			m.unknownOutcome(m.Run(Job1()), 1, c.words...)
		}})
	}
	return rows
}
