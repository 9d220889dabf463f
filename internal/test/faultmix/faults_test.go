// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultmix

import (
	"encoding/json"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// class is what the response to a POST means.
type class string

const (
	accepted       class = "accepted"
	limited        class = "limited" // sent again after the pause
	refused        class = "refused"
	unknownOutcome class = "unknown"
	notSent        class = "not sent"
)

// fault is what happens to a request instead of the service's response.
type fault struct {
	row    string // of the tables; "": the request is healthy
	times  int    // in a row
	class  class  // of a POST
	effect bool   // the service does what the POST asks for, whatever it responds
	dial   func(reached func()) (net.Conn, error)
	play   play
	played bool
}

// play makes the response; body is the service's, or one that it might have sent.
type play func(body string) faultserver.Play

// row makes the faults of some rows of the matrix, which are in brackets.
type row struct {
	name string
	make func(u *user, r *rand.Rand) fault
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func always(p faultserver.Play) play { return func(string) faultserver.Play { return p } }

func drawFault(u *user, rows []row) *fault {
	drawn := pick(u.random, rows...)
	f := drawn.make(u, u.random)
	f.row, f.times = drawn.name, max(1, f.times)
	return &f
}

// either leaves the outcome unknown, with or without the effect.
func either(r *rand.Rand, p play) fault {
	return fault{class: unknownOutcome, effect: r.IntN(2) == 0, play: p}
}

// Made once, because they take long to make.
var oversize, gzipBomb = faultserver.Oversize(200, 2<<20), faultserver.GzipBomb(200, 2<<20)

// postRows are the faults of creates and messages.
var postRows = []row{
	{"no connection (C01)", func(_ *user, r *rand.Rand) fault {
		return fault{class: notSent, times: pick(r, 1, 2, 3, 4, 1000), dial: func(func()) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		}}
	}},
	{"reset before the request was read (C03)", func(*user, *rand.Rand) fault {
		return fault{class: unknownOutcome, dial: func(reached func()) (net.Conn, error) {
			client, server := net.Pipe()
			go func() {
				if n, _ := server.Read(make([]byte, 1)); n > 0 { // an interrupt may come first
					reached()
				}
				_ = server.Close()
			}()
			return client, nil
		}}
	}},
	{"no response (C03, M04)", func(_ *user, r *rand.Rand) fault {
		return either(r, always(pick(r, faultserver.Reset, faultserver.EOF, faultserver.Stall, faultserver.Raw("HTTP/1.1 201 Cre"),
			faultserver.Raw("HTTP/1.1 201 Created\r\n"+harness.CanaryKey+"\r\n\r\n"))))
	}},
	{"5xx (C04)", func(_ *user, r *rand.Rand) fault {
		return either(r, always(faultserver.Answer(pick(r, 500, 502, 503, 504), `{"error":"try later"}`, "Retry-After: 1")))
	}},
	{"not a complete job (C05)", func(u *user, r *rand.Rand) fault {
		wrong := pick[any](r, omitted, nil, "", 17)
		if u.sends == faultserver.Message && r.IntN(2) == 0 {
			wrong = "job_other" // a create cannot know that
		}
		return either(r, pick(r,
			always(faultserver.Answer(201, "")), always(faultserver.Answer(201, "<html>welcome")), always(faultserver.Raw("HTTP/1.1 204 No Content\r\n\r\n")),
			overlaid(attrs{"id": wrong}),
			func(body string) faultserver.Play { return faultserver.Answer(201, body[:len(body)/2]) },
			func(body string) faultserver.Play { return faultserver.Truncated(201, body, len(body)/2) },
			func(body string) faultserver.Play { return faultserver.Answer(201, `{"id":"job_1",`+body[1:]) },
			func(body string) faultserver.Play { return faultserver.Answer(201, body+body) },
			func(body string) faultserver.Play { return faultserver.Answer(201, "["+body+"]") }))
	}},
	{"bad id (C06)", func(_ *user, r *rand.Rand) fault {
		return either(r, overlaid(attrs{"id": pick(r, "a/b", "../../secrets", "job\x00", "job\x1b[2J", "a%2fb", "a b", "a?b",
			"job\u202e1", strings.Repeat("a", 300), "x/"+harness.CanaryKey)}))
	}},
	{"200 (C07)", func(*user, *rand.Rand) fault { return fault{class: accepted, effect: true, play: overlaid(nil)} }},
	{"refused (C08, M03)", func(_ *user, r *rand.Rand) fault {
		return fault{class: refused, play: refusing(r, 400, 401, 403, 404, 409, 410, 413, 422)}
	}},
	{"429 (C09)", func(_ *user, r *rand.Rand) fault { return fault{class: limited, play: limiting(r)} }},
	{"redirect (C10)", func(u *user, r *rand.Rand) fault {
		location := pick(r, u.URL+"/v2/agent/proj_1/job", "http://192.0.2.7/v2/agent/proj_1/job", "https://agent.invalid/")
		return fault{class: refused, play: always(faultserver.Answer(pick(r, 301, 302, 303, 307, 308), "", "Location: "+location))}
	}},
	{"too large or slow (C13)", func(_ *user, r *rand.Rand) fault {
		return either(r, always(pick(r, oversize, gzipBomb, faultserver.Slow(201, anyJob, 9*time.Second))))
	}},
	{"odd fields of a new record (P05)", func(_ *user, r *rand.Rand) fault {
		return fault{class: accepted, effect: true, play: overlaid(oddFields(r))}
	}},
	{"interrupt while in flight (X01)", func(u *user, r *rand.Rand) fault {
		took := moment(r) % (50 * time.Second)
		return fault{class: accepted, effect: true, play: func(body string) faultserver.Play {
			return func(x *faultserver.Exchange) {
				u.run.stop()
				time.Sleep(took)
				faultserver.Answer(201, body)(x)
			}
		}}
	}},
}

// getRows are the faults of polls and refreshes.
var getRows = []row{
	{"unknown status (P01)", func(_ *user, r *rand.Rand) fault {
		return fault{times: 1 + r.IntN(5), play: overlaid(attrs{"status": pick(r, "reviewing\x1b[2J", "COMPLETED", "done")})}
	}},
	{"no status (P02)", func(_ *user, r *rand.Rand) fault {
		return fault{times: 1 + r.IntN(4), play: overlaid(attrs{"status": pick[any](r, nil, omitted, 3, "")})}
	}},
	{"bad link (P03)", func(_ *user, r *rand.Rand) fault {
		return fault{times: 1 + r.IntN(9), play: overlaid(attrs{"prLink": pick(r, "javascript:alert(1)", "https://example.com/\x1b[2J", "")})}
	}},
	{"another link (P04, M05)", func(_ *user, r *rand.Rand) fault {
		return fault{times: 1 + r.IntN(9), play: overlaid(attrs{"prLink": "https://example.com/pull/0"})}
	}},
	{"odd fields (P05)", func(_ *user, r *rand.Rand) fault { return fault{times: 1 + r.IntN(9), play: overlaid(oddFields(r))} }},
	{"no record (P06)", func(_ *user, r *rand.Rand) fault {
		return fault{times: pick(r, 1, 2, 3, 4, 40), play: pick(r,
			always(faultserver.Answer(pick(r, 408, 500, 502, 504), "")), always(faultserver.Answer(503, `{"error":"later"}`, "Retry-After: 3")),
			always(pick(r, faultserver.Reset, faultserver.EOF, faultserver.Stall, faultserver.Raw("nonsense\r\n\r\n"))),
			always(faultserver.Answer(200, pick(r, "", "null"))), always(oversize),
			func(body string) faultserver.Play { return faultserver.Truncated(200, body, 40) },
			func(body string) faultserver.Play { return faultserver.Answer(200, body[:len(body)/2]) })}
	}},
	{"key rejected (P07)", func(_ *user, r *rand.Rand) fault { return fault{play: refusing(r, 401, 403)} }},
	{"404 (P08, P09)", func(_ *user, r *rand.Rand) fault {
		return fault{times: 1 + r.IntN(6), play: always(faultserver.Answer(404, pick(r, `{"error":"job not found"}`, "<!doctype html><p>Not here")))}
	}},
	{"sign-in page (P09)", func(*user, *rand.Rand) fault {
		return fault{play: always(faultserver.Answer(200, "<html>Sign in", "Content-Type: text/html"))}
	}},
	{"429 to a GET (P10)", func(_ *user, r *rand.Rand) fault { return fault{play: limiting(r)} }},
	{"another job (P11)", func(*user, *rand.Rand) fault {
		return fault{play: overlaid(attrs{"id": "job_other", "status": "completed", "prLink": "https://example.com/pull/7"})}
	}},
	{"connection closed after the response (C12)", func(_ *user, r *rand.Rand) fault {
		return fault{times: 1 + r.IntN(5), play: func(body string) faultserver.Play { return faultserver.Last(faultserver.Answer(200, body)) }}
	}},
}

// refusing echoes the key in most bodies.
func refusing(r *rand.Rand, statuses ...int) play {
	const key = harness.CanaryKey
	return always(faultserver.Answer(pick(r, statuses...), pick(r, `{"error":"unknown key `+key+`"}`, `{"error":{"message":"`+key+`"}}`,
		`{"title":"Bad","detail":"`+key+`"}`, "<!doctype html><p>"+key, "", `{"error":"no"}`, strings.Repeat("x", 500)+key)))
}

// limiting gives a pause in one of the ways there are. Dates (P12) are on the service's clock.
func limiting(r *rand.Rand) play {
	const httpDate = "Mon, 02 Jan 2006 15:04:05 GMT"
	clock := time.Now().Add(pick(r, 0, -time.Hour, time.Hour)).UTC()
	date := "Retry-After: " + clock.Add(pick(r, 45*time.Second, -time.Hour)).Format(httpDate)
	return always(faultserver.Answer(429, `{"error":"slow down"}`, pick(r, "Retry-After: 0", "Retry-After: 5", "Retry-After: 40", "Retry-After: 300",
		"Retry-After: -5", "Retry-After: soon", "Retry-After: 7200", "X-Pause: 5", date), "Date: "+clock.Format(httpDate)))
}

// oddFields are values that the contract does not promise.
func oddFields(r *rand.Rand) attrs {
	return attrs{
		"source": pick[any](r, nil, omitted, "main", attrs{"repository": nil}), "model": pick[any](r, nil, omitted, []string{"m"}),
		"createdAt":  pick[any](r, nil, omitted, "2026-01-02T03:04:05", 1767323045),
		"archivedAt": pick[any](r, nil, omitted, "2026-W01-5", false), "mood": attrs{"of": "the day"}, "ID": "job_0",
	}
}

// anyJob is a record that the service might have sent.
const anyJob = `{"id":"job_1","status":"active","model":"m","prLink":null,"archivedAt":null,"createdAt":"2026-01-02T03:04:05.678Z"}`

// idOf is the id in a record.
func idOf(body string) string {
	var record struct{ ID string }
	if err := json.Unmarshal([]byte(body), &record); err != nil {
		panic(err)
	}
	return record.ID
}

// omitted as the value of a field leaves it out.
const omitted = "\x00omitted"

// overlaid responds with the service's record, fields laid over it.
func overlaid(fields attrs) play {
	return func(body string) faultserver.Play {
		record := attrs{}
		if err := json.Unmarshal([]byte(body), &record); err != nil {
			panic(err)
		}
		for name, value := range fields {
			if record[name] = value; value == omitted {
				delete(record, name)
			}
		}
		text, err := json.Marshal(record)
		if err != nil {
			panic(err)
		}
		return faultserver.Answer(200, string(text))
	}
}
