// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"fmt"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// answerRows are answers to a create that do not say that a job was started.
func answerRows() []Row {
	var rows []Row
	whole := JobJSON(nil)
	withID := func(id any) faultserver.Play { return faultserver.Answer(201, JobJSON(attrs{"id": id})) }
	// Red without: the strict decodeJob (its checks for an id, duplicates, trailing data); a
	// 2xx that is no whole record taken as refused or sent again is red in all of them.
	for _, c := range []struct {
		name string
		play faultserver.Play
		word string
	}{
		{"C05_truncated_json", faultserver.Answer(201, whole[:len(whole)/2]), "ends before the job record is complete"},
		{"C05_truncated_body", faultserver.Truncated(201, whole, len(whole)/2), "unexpected EOF"},
		{"C05_truncated_after_record", faultserver.Truncated(201, whole+"   ", len(whole)), "unexpected EOF"},
		{"C05_empty_body", faultserver.Answer(201, ""), "not a JSON object"},
		{"C05_no_content", faultserver.Raw("HTTP/1.1 204 No Content\r\n\r\n"), "not a JSON object"},
		{"C05_no_id", withID(Omit{}), "no usable job id"},
		{"C05_id_in_other_case", faultserver.Answer(201, JobJSON(attrs{"id": Omit{}, "ID": "job_1"})), "no usable job id"},
		{"C05_id_empty", withID(""), "no usable job id"},
		{"C05_id_null", withID(nil), "no usable job id"},
		{"C05_id_number", withID(17), "no usable job id"},
		{"C05_id_object", withID(attrs{"id": "job_1"}), "no usable job id"},
		{"C05_id_twice", faultserver.Answer(201, `{"id":"job_1",`+whole[1:]), "a field twice"},
		{"C05_trailing_data", faultserver.Answer(201, whole+`{"id":"job_2"}`), "continues after the job record"},
		{"C05_array", faultserver.Answer(201, "["+whole+"]"), "not a JSON object"},
		{"C05_html", faultserver.Answer(201, "<html>welcome</html>", "Content-Type: text/html"), "the response is a web page, not the service's JSON"},
		// Red without: maskError for a refused id.
		{"C06_id_that_holds_the_key", withID("x/" + harness.CanaryKey), "(sensitive)"},
	} {
		rows = append(rows, Row{name: c.name, clock: true, Test: func(m *Matrix) {
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
			m.Script(faultserver.Create, withID(id))
			diags := m.Run(Job1())
			m.wantDiags(diags, createFailed)
			m.wantNoWords("\x00", "\x1b", "\u202e", "job\n1")
			m.unknownOutcome(diags, 1, "no usable job id", id[:1])
			for _, r := range m.Requests()[1:] {
				if strings.Contains(r.Path, id) || strings.Contains(r.Path, "..") || strings.Contains(r.Path, "%") {
					m.Errorf("it is in a path: %s", r.Path)
				}
			}
		}})
	}
	return append(append(rows, refusalRows()...), bodyRows()...)
}

func refusalRows() []Row {
	const says = `error message "no such thing"`
	var rows []Row
	// Red without: 4xx as a final refusal in classifyPost; the words, without serviceMessage; the URL, without Request in reason.
	for _, status := range []int{400, 401, 403, 404, 409, 413, 422} {
		for _, a := range []struct{ name, body, kind, word string }{
			{"json", `{"error":"no such thing"}`, "application/json", says},
			{"message", `{"message":"no such thing"}`, "application/json", says},
			{"nested", `{"error":{"message":"no such thing","code":7}}`, "application/json", says},
			{"problem", `{"type":"about:blank","title":"Bad","detail":"no such thing"}`, "application/problem+json", says},
			{"html", "<!doctype html><p>no such thing", "text/html", "the response is a web page"},
			{"nothing", "", "application/json", ""},
		} {
			rows = append(rows, Row{name: fmt.Sprintf("C08_%d_%s", status, a.name), Test: func(m *Matrix) {
				m.Script(faultserver.Create, faultserver.Answer(status, a.body, "Content-Type: "+a.kind))
				m.refused(m.Run(Job1()), a.word, fmt.Sprintf("The service responded with %d", status), "(POST "+m.URL+"/v2/agent/proj_1/job)")
				if a.name == "html" {
					m.wantWords("Check base_url")
				}
			}})
		}
	}
	for _, c := range []struct {
		name, body string
		words      []string
		not        []string
	}{
		// Red without: Printable around the service's words.
		{"words_are_escaped_and_cut", `{"error":"\u001b[2J\u202e` + strings.Repeat("é", 10_000) + `"}`, []string{"u001b[2J", "u202e"}, []string{"\x1b", "\u202e"}},
		// Red without: key.mask in Client.newError.
		{"echoed_key_is_masked", `{"error":"unknown key ` + harness.CanaryKey + `"}`, []string{"unknown key (sensitive)", "Check admin_key"}, nil},
		// Red without: masking before cutting.
		{"echoed_key_at_the_cut_is_masked", strings.Repeat("x", 500) + harness.CanaryKey, []string{"(sensitive)"}, []string{harness.CanaryKey[:8]}},
	} {
		rows = append(rows, Row{name: "C08_" + c.name, Test: func(m *Matrix) {
			m.Script(faultserver.Create, faultserver.Answer(401, c.body))
			m.refused(m.Run(Job1()), c.words...)
			m.wantNoWords(c.not...)
			_, words, _ := strings.Cut(m.text, `error message "`)
			words, _, _ = strings.Cut(words, `"`)
			if n := utf8.RuneCountInString(strings.ReplaceAll(words, `\\`, `\`)); n > 512 || c.name == "words_are_escaped_and_cut" && n < 512 {
				m.Errorf("%d characters of the service's words", n)
			}
		}})
	}
	return rows
}

// bodyRows are bodies that are too large or too slow, on pipes, which hold
// nothing back: what the server could send is what the client has read.
func bodyRows() []Row {
	const limit = 1 << 20
	var rows []Row
	for _, c := range []struct {
		name, word string
		play       faultserver.Play
		took       time.Duration
	}{
		// Red without: the LimitReader in Client.exchange.
		{"C13_10_MB_answer", "larger than 1 MiB", faultserver.Oversize(201, 10_000_000), 0},
		// Red without: the LimitReader behind the decompression in Client.exchange.
		{"C13_gzip_bomb", "larger than 1 MiB", faultserver.GzipBomb(201, 16*limit), 0},
		// Red without: the request timeout covering the body (the row would end after the whole answer).
		{"C13_slow_loris", "o complete response within the request timeout", faultserver.Slow(201, JobJSON(nil), 9*time.Second), time.Minute},
		// Red without: the request timeout in Client.exchange (the row would hang in the bubble).
		{"C03_header_timeout", "No complete response within the request timeout", faultserver.Stall, time.Minute},
	} {
		rows = append(rows, Row{name: c.name, clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Create, c.play)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			diags := m.Run(Job1())
			m.wantTook(start, c.took, c.took)
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; c.name == "C13_gzip_bomb" && used > 20*limit {
				m.Errorf("%d MiB allocated for an answer of which 1 MiB may be decoded", used/limit)
			}
			if sent := m.Sent(); sent > limit+64<<10 {
				m.Errorf("%d bytes were read", sent)
			}
			m.unknownOutcome(diags, 1, c.word)
		}})
	}
	return rows
}
