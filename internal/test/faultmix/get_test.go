// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultmix

import (
	"encoding/json"
	"math/rand/v2"
	"net/http/httptest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/matrix"
)

// getFault is what happens to polls or to a refresh.
type getFault struct {
	row   string
	skip  int                          // healthy answers before it
	times int                          // in a row
	until time.Duration                // or for as long as this, since the first
	when  func(job simulator.Job) bool // nil: always
	make  func(l getCall) faultserver.Play

	first time.Time
}

// getCall is one GET that waits for its answer.
type getCall struct {
	*user
	x   *faultserver.Exchange
	job simulator.Job
}

// getRow makes the faults of one row.
type getRow struct {
	row    string
	weight int
	wait   bool // in a wait only
	make   func(u *user, r *rand.Rand) *getFault
}

// playing is one play for every time.
func playing(times int, play faultserver.Play) *getFault {
	return &getFault{times: times, make: func(getCall) faultserver.Play { return play }}
}

// overlaid lays fields over the true record.
func overlaid(times int, fields attrs) *getFault {
	return &getFault{times: times, make: func(l getCall) faultserver.Play {
		return faultserver.Answer(200, laidOver(l.record(), fields))
	}}
}

// during limits a fault to jobs of which something holds.
func (f *getFault) during(when func(job simulator.Job) bool) *getFault {
	f.when = when
	return f
}

// getRows are the faults of polls and refreshes that can be mixed.
func getRows() []getRow {
	const newJob = 50 * time.Second
	active := func(job simulator.Job) bool { return job.Status == "active" }
	notFound := faultserver.Answer(404, `{"error":"job not found"}`)
	return []getRow{
		{row: rowID('P', 1), weight: 3, make: func(_ *user, r *rand.Rand) *getFault {
			return overlaid(1+r.IntN(5), attrs{"status": pick(r, "reviewing\x1b[2J", "COMPLETED", "done")})
		}},
		{row: rowID('P', 2), weight: 3, wait: true, make: func(_ *user, r *rand.Rand) *getFault {
			return overlaid(1+r.IntN(4), attrs{"status": pick[any](r, nil, matrix.Omit{}, 3, "")})
		}},
		{row: rowID('P', 3), weight: 3, make: func(_ *user, r *rand.Rand) *getFault {
			return overlaid(1+r.IntN(9), attrs{"prLink": pick(r, "javascript:alert(1)", "ftp://example.com/1", "https://example.com/\x1b[2J", "https://example.com/\u202e1", "")})
		}},
		{row: rowID('P', 4), weight: 3, wait: true, make: func(_ *user, r *rand.Rand) *getFault {
			return overlaid(1+r.IntN(9), attrs{"prLink": "https://example.com/pull/1"}).during(active)
		}},
		{row: rowID('P', 5), weight: 3, make: func(_ *user, r *rand.Rand) *getFault { return overlaid(1+r.IntN(9), oddFields(r)) }},
		{row: rowID('P', 6), weight: 4, make: func(_ *user, r *rand.Rand) *getFault {
			f := passing(r, 1+r.IntN(4))
			if r.IntN(5) == 0 {
				f.until = time.Duration(1+r.IntN(10)) * time.Minute
			}
			return f
		}},
		{row: rowID('P', 7), weight: 2, make: func(_ *user, r *rand.Rand) *getFault {
			return playing(1, faultserver.Answer(pick(r, 401, 403), refusalBody(r)))
		}},
		{row: rowID('P', 8), weight: 8, wait: true, make: func(u *user, r *rand.Rand) *getFault {
			return playing(1+r.IntN(6), notFound).during(func(job simulator.Job) bool {
				return u.began.Add(newJob).After(time.Now()) && !job.CreatedAt.Before(u.began)
			})
		}},
		{row: rowID('P', 9), weight: 3, make: func(u *user, r *rand.Rand) *getFault {
			play := pick(r, notFound, faultserver.Answer(404, "<!doctype html><p>Not here"), faultserver.Answer(200, "<html>Sign in", "Content-Type: text/html"))
			return playing(1+r.IntN(3), play).during(func(job simulator.Job) bool { return !u.applying || time.Since(job.CreatedAt) > time.Minute })
		}},
		{row: rowID('P', 10), weight: 3, make: func(u *user, r *rand.Rand) *getFault {
			return u.slowedDown(pick(r, matrix.Header("Retry-After: 50"), matrix.Header("Retry-After: 5"), matrix.Header(), matrix.Header("Retry-After: soon"), matrix.Header("Retry-After: 7200")))
		}},
		{row: rowID('P', 12), weight: 1, make: func(u *user, r *rand.Rand) *getFault {
			return u.slowedDown(matrix.Dates(20*time.Second, pick(r, -time.Hour, time.Hour), true))
		}},
		{row: rowID('P', 11), weight: 2, make: func(*user, *rand.Rand) *getFault {
			return playing(1, faultserver.Answer(200, matrix.JobJSON(attrs{"id": "job_other", "status": "completed", "prLink": "https://example.com/pull/7"})))
		}},
		{row: rowID('C', 12), weight: 3, make: func(_ *user, r *rand.Rand) *getFault {
			return &getFault{times: 1 + r.IntN(5), make: func(l getCall) faultserver.Play { return faultserver.Last(faultserver.Answer(200, l.record())) }}
		}},
		{row: rowID('M', 5), weight: 12, wait: true, make: func(_ *user, r *rand.Rand) *getFault {
			return overlaid(1+r.IntN(9), attrs{"prLink": "https://example.com/pull/0"}).during(func(job simulator.Job) bool { return active(job) && len(job.Prompts) > 1 })
		}},
		{row: rowID('X', 2), weight: 2, wait: true, make: func(u *user, r *rand.Rand) *getFault {
			play := pick(r, faultserver.Healthy, faultserver.Stall)
			return &getFault{times: 1, make: func(getCall) faultserver.Play {
				u.interrupt()
				return play
			}}
		}},
	}
}

// slowedDown answers a GET with 429, which all of the module's must heed.
func (u *user) slowedDown(lines func(time.Time) []string) *getFault {
	return &getFault{times: 1, make: func(getCall) faultserver.Play {
		header := lines(time.Now())
		u.slacken(len(u.users)) // their turns come during the pause, and they go after it
		u.rootModule.mu.Lock()
		u.getRest.begin(retryAfterSeconds(header))
		u.rootModule.mu.Unlock()
		return matrix.Limited(matrix.Header(header...))
	}}
}

// passing is a fault of a GET that may pass.
func passing(r *rand.Rand, times int) *getFault {
	plays := make([]func(whole string) faultserver.Play, times)
	for i := range plays {
		play := pick(r,
			faultserver.Answer(500, ""), faultserver.Answer(502, "<html>bad gateway", "Content-Type: text/html"),
			faultserver.Answer(503, `{"error":"later"}`, "Retry-After: 3"), faultserver.Answer(504, "{}"),
			faultserver.Reset, faultserver.EOF, faultserver.Raw("nonsense\r\n\r\n"), faultserver.Answer(200, ""),
			faultserver.Answer(200, "null"), faultserver.Oversize(200, 2<<20), faultserver.Answer(408, ""), faultserver.Stall)
		plays[i] = pick(r, func(string) faultserver.Play { return play }, func(string) faultserver.Play { return play }, func(string) faultserver.Play { return play },
			func(whole string) faultserver.Play { return faultserver.Truncated(200, whole, 40) },
			func(whole string) faultserver.Play { return faultserver.Answer(200, whole[:len(whole)/2]) })
	}
	next := -1
	return &getFault{times: times, make: func(l getCall) faultserver.Play {
		next++ // under until there may be more
		return plays[next%times](l.record())
	}}
}

// oddFields are values of a record that the contract does not promise.
func oddFields(r *rand.Rand) attrs {
	all := attrs{
		"source": pick[any](r, nil, matrix.Omit{}, "main", attrs{"repository": nil}), "model": pick[any](r, nil, matrix.Omit{}, []string{"m"}),
		"createdAt":  pick[any](r, nil, matrix.Omit{}, "2026-01-02T03:04:05", 1767323045),
		"archivedAt": pick[any](r, nil, matrix.Omit{}, "2026-W01-5", false), "mood": attrs{"of": "the day"}, "ID": "job_0",
	}
	for name := range all {
		if r.IntN(2) == 0 {
			delete(all, name)
		}
	}
	return all
}

// laidOver is a record with fields laid over it.
func laidOver(record string, fields attrs) string {
	var all attrs
	if err := json.Unmarshal([]byte(record), &all); err != nil {
		panic(err)
	}
	return matrix.JobJSON(fakecli.With(fakecli.With(attrs{"model": matrix.Omit{}, "prLink": matrix.Omit{}, "archivedAt": matrix.Omit{}, "source": matrix.Omit{}, "createdAt": matrix.Omit{}}, all), fields))
}

// record is the service's true answer.
func (l getCall) record() string {
	recorder := httptest.NewRecorder()
	l.sim.ServeHTTP(recorder, l.x.Request)
	return recorder.Body.String()
}

// answerGet answers a GET.
func (u *user) answerGet(job simulator.Job, x *faultserver.Exchange) {
	u.mu.Lock()
	f := u.nextGet(job)
	u.mu.Unlock()
	if f == nil {
		faultserver.Healthy(x)
		return
	}
	u.slacken(1)
	f.make(getCall{u, x, job})(x)
}

// nextGet is the fault whose turn it is, or nil.
func (u *user) nextGet(job simulator.Job) *getFault {
	for range u.gets {
		f := u.gets[0]
		u.gets = u.gets[1:]
		switch {
		case f.skip > 0:
			f.skip--
			u.gets = append([]*getFault{f}, u.gets...)
			return nil
		case f.when != nil && !f.when(job):
			u.gets = append(u.gets, f) // perhaps later
			continue
		}
		if f.first.IsZero() {
			f.first = time.Now()
			u.played(f.row)
		}
		if f.times--; f.times > 0 || time.Since(f.first) < f.until {
			u.gets = append([]*getFault{f}, u.gets...)
		}
		return f
	}
	return nil
}
