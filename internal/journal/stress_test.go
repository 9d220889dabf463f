// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// game is runs that race for the same names, and the jobs of the POSTs that the service accepts.
type game struct {
	*journal.World

	t       *testing.T
	seed    uint64
	isLocal bool

	mu       sync.Mutex
	accepted map[string][]string // by name
}

// player is a run of the CLI, which may be killed at any access.
type player struct {
	*game
	send.Sender

	run     string
	rate    float64 // of faults
	store   *journal.Store
	process *cli.Process
	isDead  atomic.Bool

	choosing sync.Mutex
	random   *rand.Rand
}

// The requests of a game: the last one is a message. The prompt is the name.
var requests = []send.Request{request("a", ""), request("b", ""), request("c", "job")}

func request(name, job string) send.Request {
	return send.Request{
		Wanted: journal.Wanted{Project: "p", Name: name, Recipient: job, Prompt: name}, Body: agentapi.PostBody{Prompt: name},
	}
}

func newGame(t *testing.T, seed uint64, isLocal bool) *game {
	return &game{World: new(journal.World), t: t, seed: seed, isLocal: isLocal, accepted: map[string][]string{}}
}

func (g *game) join(run int, rate float64) *player {
	p := &player{game: g, run: fmt.Sprint(run), rate: rate, random: rand.New(rand.NewPCG(g.seed, uint64(run)))}
	p.Journal, p.store, p.process = g.Open(p.run)
	p.store.Local, p.store.Fault, p.store.Delay = g.isLocal, p.fault, time.Duration(p.under(5000))*time.Millisecond
	p.Client = agentapi.New(agentapi.Config{
		BaseURL: &url.URL{Scheme: "http", Host: "127.0.0.1"}, Key: agentapi.NewKey("key"), RequestTimeout: time.Second, MaxPollsPerSecond: 1,
		Dial: faultserver.New(g.t, p).Dial,
	})
	return p
}

func (p *player) under(n int) int {
	p.choosing.Lock()
	defer p.choosing.Unlock()
	return p.random.IntN(n)
}

func (p *player) happens(rate float64) bool { return float64(p.under(10_000)) < 10_000*rate }
func (p *player) pause(most int)            { time.Sleep(time.Duration(p.under(most)) * time.Millisecond) }

// die reports whether the run has been killed, perhaps just now. What it has sent is on its way.
func (p *player) die(rate float64) bool {
	if p.happens(rate) {
		p.isDead.Store(true)
		p.End(p.run)
	}
	return p.isDead.Load()
}

// fault is one of the store, or of the run itself, before or after an access.
func (p *player) fault(op string) journal.Fault {
	if p.die(p.rate / 8) {
		return journal.LostRequest
	}
	p.pause(30)
	faults := []journal.Fault{journal.LostRequest, journal.LostResponse, journal.Repeated, journal.Late, journal.Hangs}
	switch f := faults[p.under(len(faults))]; {
	case !p.happens(p.rate):
		return journal.None
	case op == "put":
		return f
	}
	return journal.LostRequest
}

// ServeHTTP is the service for a run: its responses may be lost, and it may refuse a POST.
func (p *player) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := path.Base(r.URL.Path)
	if r.Method == http.MethodPost {
		var posted agentapi.PostBody
		_ = json.NewDecoder(r.Body).Decode(&posted)
		p.pause(400)
		if p.happens(2 * p.rate) {
			w.WriteHeader([]int{http.StatusBadRequest, http.StatusTooManyRequests}[p.under(2)])
			return
		}
		if id = "job"; path.Base(r.URL.Path) != "message" {
			id = fmt.Sprint("job-", posted.Prompt, "-", p.run)
		}
		p.mu.Lock()
		p.accepted[posted.Prompt] = append(p.accepted[posted.Prompt], id)
		p.mu.Unlock()
		p.pause(400)
	}
	if p.die(p.rate/4) || p.happens(p.rate) {
		panic(http.ErrAbortHandler)
	}
	_, _ = fmt.Fprintf(w, `{"id":%q,"status":"active"}`, id)
}

// jobs are those of a name's POSTs.
func (g *game) jobs(name string) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.accepted[name])
}

// try sends a request. It returns what became of it.
func (p *player) try(ctx context.Context, r send.Request) string {
	out := p.Begin(ctx, r).Send(ctx)
	if jobs := p.jobs(r.Name); out.Result == send.Adopted && !p.die(0) && !slices.Equal(jobs, []string{out.JobID}) {
		p.t.Errorf("seed %d: run %s adopts %s for %s, whose jobs are %v", p.seed, p.run, out.JobID, r.Name, jobs)
	}
	return map[send.Result]string{
		send.Accepted: "sent", send.Adopted: "adopted", send.AlreadySent: "already sent", send.EarlierUnknown: "unknown",
		send.Unknown: "unknown response", send.NoEffect: "failed", send.JournalUnusable: "failed", send.Unreadable: "failed",
	}[out.Result]
}

// play lets runs race. Then a healthy one finds each name with at most one POST, and sends if there was none.
func (g *game) play(ctx context.Context, rate float64) {
	var all sync.WaitGroup
	for i := range 8 {
		p := g.join(i+1, rate)
		all.Go(func() {
			p.pause(2000)
			for n := range requests {
				for !p.die(p.rate/8) && p.try(ctx, requests[(n+i)%len(requests)]) == "failed" {
				}
			}
			if !p.die(0) {
				p.process.Drain(ctx)
			}
			p.End(p.run)
		})
	}
	all.Wait()
	time.Sleep(2 * time.Minute)
	for _, r := range requests {
		before := len(g.jobs(r.Name))
		result := g.join(100, 0).try(ctx, r)
		ends := map[int][]string{0: {"sent", "unknown"}, 1: {"adopted", "already sent", "unknown"}}
		if !slices.Contains(ends[before], result) {
			g.t.Errorf("seed %d: %d POSTs of %s, and a healthy run's is %q", g.seed, before, r.Name, result)
		}
	}
	time.Sleep(2 * time.Hour) // what killed runs offer in vain
}

// What each request costs. (S06)
func TestStress_accesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, isLocal := range []bool{false, true} {
			g := newGame(t, 0, isLocal)
			others := request("a", "")
			others.Arguments = "others"
			for i, row := range []struct {
				request send.Request
				want    string
				takes   string
			}{
				{request("a", ""), "sent", "prove put put"},
				{request("a", ""), "adopted", "prove put get get put"},
				{others, "sent", "prove put get get put put"},
				{request("c", "job"), "sent", "get prove put put"},
				{request("c", "job"), "already sent", "get"},
			} {
				p := g.join(i+1, 0)
				if isLocal { // before it sends, it says so
					row.takes = strings.Replace(row.takes, "put put", "put put put", 1)
				}
				if result, took := p.try(t.Context(), row.request), p.store.Took(); result != row.want || took != row.takes {
					t.Errorf("local: %t, %d: %s, %s, want %s, %s", isLocal, i, result, took, row.want, row.takes)
				}
				short, cancel := context.WithTimeout(t.Context(), time.Minute)
				if p.process.Drain(short); short.Err() != nil {
					t.Error("the process waits for an outcome")
				}
				cancel()
			}
		}
	})
}

// A Delete that frees the name between the look of a create and its adoption does not hide the job.
func TestStress_freedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGame(t, 0, false)
		g.join(1, 0).try(t.Context(), request("a", ""))
		p, puts := g.join(2, 0), 0
		p.store.Fault = func(op string) journal.Fault {
			if op == "put" {
				puts++
			}
			if op == "put" && puts == 2 { // the first one was a claim, which met the record
				if _, err := p.Journal.Remove(t.Context(), journal.Object{Project: "p", Name: "a", JobID: "job-a-1"}, journal.Leave); err != nil {
					t.Error(err)
				}
			}
			return journal.None
		}
		result := p.try(t.Context(), request("a", ""))
		if r, err := p.Journal.Peek(t.Context(), "p", "a"); result != "adopted" || r.IsFreed() || err != nil {
			t.Errorf("%s, %+v, %v", result, r, err)
		}
	})
}

// Runs without a lock race for names, in a store that loses, repeats and delays what it is sent, and are killed at any moment.
// No name gets two jobs, no run adopts a wrong one, and afterwards each name has a job, or a create with an unknown outcome.
// (X07) EXPLORE=all plays 2,000 seeds.
func TestStress(t *testing.T) {
	for _, rate := range []float64{0.03, 0.15} {
		for seed := range map[string]uint64{"": 100, "more": 400, "all": 2000}[os.Getenv("EXPLORE")] {
			synctest.Test(t, func(t *testing.T) {
				g := newGame(t, seed, seed%3 == 0)
				g.Apart = seed%2 != 0
				g.play(t.Context(), rate)
			})
			if t.Failed() {
				break
			}
		}
	}
}
