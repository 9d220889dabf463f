// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"fmt"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// answerRows are answers to a create that do not say that a job was started.
func answerRows() []Row {
	var rows []Row
	whole := JobJSON(nil)
	// Red without: the strict decodeJob (its checks for an id, duplicates, trailing data); a
	// 2xx that is no whole record taken as refused or sent again is red in all of them.
	for _, c := range []struct {
		name string
		play faultserver.Play
		word string
	}{
		{"truncated_json", faultserver.Answer(201, whole[:len(whole)/2]), "ends before the job record does"},
		{"truncated_body", faultserver.Truncated(201, whole, len(whole)/2), "unexpected EOF"},
		{"truncated_after_record", faultserver.Truncated(201, whole+"   ", len(whole)), "unexpected EOF"},
		{"empty_body", faultserver.Answer(201, ""), "not a JSON object"},
		{"no_content", faultserver.Raw("HTTP/1.1 204 No Content\r\n\r\n"), "not a JSON object"},
		{"no_id", faultserver.Answer(201, JobJSON(attrs{"id": Omit{}})), "no usable job id"},
		{"id_in_other_case", faultserver.Answer(201, JobJSON(attrs{"id": Omit{}, "ID": "job_1"})), "no usable job id"},
		{"id_empty", faultserver.Answer(201, JobJSON(attrs{"id": ""})), "no usable job id"},
		{"id_null", faultserver.Answer(201, JobJSON(attrs{"id": nil})), "no usable job id"},
		{"id_number", faultserver.Answer(201, JobJSON(attrs{"id": 17})), "no usable job id"},
		{"id_object", faultserver.Answer(201, JobJSON(attrs{"id": attrs{"id": "job_1"}})), "no usable job id"},
		{"id_twice", faultserver.Answer(201, `{"id":"job_1",`+whole[1:]), "a field twice"},
		{"trailing_data", faultserver.Answer(201, whole+`{"id":"job_2"}`), "goes on after the job record"},
		{"array", faultserver.Answer(201, "["+whole+"]"), "not a JSON object"},
		{"html", faultserver.Answer(201, "<html>welcome</html>", "Content-Type: text/html"), "the answer is a web page, not the service's JSON"},
	} {
		rows = append(rows, Row{name: "C05_" + c.name, clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Create, c.play)
			m.unknownOutcome(m.Run(Job1()), 1, c.word)
		}})
	}
	// Red without: ValidID in decodeJob.
	for name, id := range map[string]string{
		"slash": "a/b", "dots": "../../secrets", "nul": "job\x00", "escape": "job\x1b[2J", "newline": "job\n1",
		"percent": "a%2fb", "space": "a b", "query": "a?b", "bidirectional": "job\u202e1", "too_long": strings.Repeat("a", 300),
	} {
		rows = append(rows, Row{name: "C06_id_with_" + name, clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Create, faultserver.Answer(201, JobJSON(attrs{"id": id})))
			diags := m.Run(Job1())
			if shown := fakecli.Text(diags); strings.ContainsAny(shown, "\x00\x1b\u202e") || strings.Contains(shown, "job\n1") {
				m.Errorf("not escaped: %q", shown)
			}
			m.unknownOutcome(diags, 1, "no usable job id", id[:1])
			for _, r := range m.Requests()[1:] {
				if strings.Contains(r.Path, id) || strings.Contains(r.Path, "..") || strings.Contains(r.Path, "%") {
					m.Errorf("it is in a path: %s", r.Path)
				}
			}
		}})
	}
	rows = append(rows, Row{name: "C06_id_that_holds_the_key", clock: true, Test: func(m *Matrix) {
		// Red without: maskError for a refused id.
		m.Script(faultserver.Create, faultserver.Answer(201, JobJSON(attrs{"id": "x/" + harness.CanaryKey})))
		m.unknownOutcome(m.Run(Job1()), 1, "(sensitive)")
	}})
	return append(append(rows, refusalRows()...), bodyRows()...)
}

func refusalRows() []Row {
	type answer struct {
		name, body, kind string
		words            []string
	}
	answers := []answer{
		{"json", `{"error":"no such thing"}`, "application/json", []string{`it says "no such thing"`}},
		{"message", `{"message":"no such thing"}`, "application/json", []string{`it says "no such thing"`}},
		{"nested", `{"error":{"message":"no such thing","code":7}}`, "application/json", []string{`it says "no such thing"`}},
		{"problem", `{"type":"about:blank","title":"Bad","detail":"no such thing"}`, "application/problem+json", []string{`it says "no such thing"`}},
		{"html", "<!doctype html><p>no such thing", "text/html", []string{"the answer is a web page", "check base_url"}},
		{"nothing", "", "application/json", nil},
	}
	var rows []Row
	// Red without: 4xx as a final refusal in classifyPost; the words, without serviceMessage; the URL, without Request in reason.
	for _, status := range []int{400, 401, 403, 404, 409, 413, 422} {
		for _, a := range answers {
			rows = append(rows, Row{name: fmt.Sprintf("C08_%d_%s", status, a.name), Test: func(m *Matrix) {
				m.Script(faultserver.Create, faultserver.Answer(status, a.body, "Content-Type: "+a.kind))
				m.refused(m.Run(Job1()), append(a.words, fmt.Sprintf("The service answered %d", status), "(POST "+m.URL+"/v2/agent/proj_1/job)")...)
			}})
		}
	}
	return append(rows,
		// Red without: Printable around the service's words.
		Row{name: "C08_words_are_escaped_and_cut", Test: func(m *Matrix) {
			m.Script(faultserver.Create, faultserver.Answer(400, `{"error":"\u001b[2J\u202e`+strings.Repeat("é", 10_000)+`"}`))
			diags := m.Run(Job1())
			m.refused(diags, "u001b[2J", "u202e")
			if strings.ContainsAny(fakecli.Text(diags), "\x1b\u202e") {
				m.Errorf("not escaped: %q", fakecli.Text(diags))
			}
			_, words, _ := strings.Cut(fakecli.Text(diags), `it says "`)
			words, _, _ = strings.Cut(words, `"`)
			if n := utf8.RuneCountInString(strings.ReplaceAll(words, `\\`, `\`)); n != 512 {
				m.Errorf("%d characters of the service's words", n)
			}
		}},
		// Red without: key.mask in Client.newError.
		Row{name: "C08_echoed_key_is_masked", Test: func(m *Matrix) {
			m.Script(faultserver.Create, faultserver.Answer(401, `{"error":"unknown key `+harness.CanaryKey+`"}`))
			m.refused(m.Run(Job1()), "unknown key (sensitive)", "Check admin_key")
		}},
		// Red without: masking before cutting.
		Row{name: "C08_echoed_key_at_the_cut_is_masked", Test: func(m *Matrix) {
			m.Script(faultserver.Create, faultserver.Answer(401, strings.Repeat("x", 500)+harness.CanaryKey))
			diags := m.Run(Job1())
			m.refused(diags, "(sensitive)")
			if strings.Contains(fakecli.Text(diags), harness.CanaryKey[:8]) {
				m.Error("a part of the key is shown")
			}
		}},
	)
}

// bodyRows are bodies that are too large or too slow, on pipes, which hold
// nothing back: what the server could send is what the client has read.
func bodyRows() []Row {
	const limit = 1 << 20
	return []Row{
		// Red without: the LimitReader in Client.exchange.
		{name: "C13_10_MB_answer", clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Create, faultserver.Oversize(201, 10_000_000))
			diags := m.Run(Job1())
			if sent := m.Sent(); sent > limit+64<<10 {
				m.Errorf("%d bytes were read", sent)
			}
			m.unknownOutcome(diags, 1, "larger than 1 MiB")
		}},
		// Red without: the request timeout covering the body (the row would end after the whole answer).
		{name: "C13_slow_loris", clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Create, faultserver.Slow(201, JobJSON(nil), 9*time.Second))
			start := time.Now()
			diags := m.Run(Job1())
			if took := time.Since(start); took != time.Minute {
				m.Errorf("gave up after %s", took)
			}
			m.unknownOutcome(diags, 1, "o complete answer within the request timeout")
		}},
		// Red without: the LimitReader behind the decompression in Client.exchange.
		{name: "C13_gzip_bomb", clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Create, faultserver.GzipBomb(201, 16*limit))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			diags := m.Run(Job1())
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 20*limit {
				m.Errorf("%d MiB allocated for an answer of which 1 MiB may be decoded", used/limit)
			}
			m.unknownOutcome(diags, 1, "larger than 1 MiB")
		}},
	}
}
