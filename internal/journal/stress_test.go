// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// game is runs that race for the same names, and a service that counts what it accepts.
type game struct {
	*journal.World

	t       *testing.T
	seed    uint64
	isLocal bool
	server  *faultserver.Server

	service  sync.Mutex
	players  map[string]*player
	accepted map[string][]string        // the jobs of each name's POSTs
	givenUp  map[string]map[string]bool // the requests of each name that a person has given up
}

// player is a run of the CLI, which may be killed at any access.
type player struct {
	*game
	send.Sender

	store      *journal.Store
	process    *cli.Process
	run        string
	rate       float64                    // of faults
	operations map[string]*send.Operation // by name

	mu     sync.Mutex
	stop   func() // ends what a dead run would try in vain
	random *rand.Rand
	isDead bool
}

// The requests of a game: the last one is a message. The prompt is the name.
var requests = []send.Request{request("a", ""), request("b", ""), request("c", "job")}

func request(name, job string) send.Request {
	return send.Request{
		Wanted: journal.Wanted{Project: "p", Name: name, JobID: job, Prompt: name}, Body: agentapi.NewJob{Prompt: name},
	}
}

func newGame(t *testing.T, seed uint64, isLocal bool) *game {
	t.Helper()
	g := &game{
		World: journal.NewWorld(), t: t, seed: seed, isLocal: isLocal, players: map[string]*player{},
		accepted: map[string][]string{}, givenUp: map[string]map[string]bool{},
	}
	g.server = faultserver.New(t, g)
	return g
}

func (g *game) join(run string, rate float64, forget ...string) *player {
	n, _ := strconv.Atoi(run)
	p := &player{game: g, run: run, rate: rate, random: rand.New(rand.NewPCG(g.seed, uint64(n))), operations: map[string]*send.Operation{}, stop: func() {}}
	j, s, process := g.Open(run, forget...)
	s.Local, s.Fault, s.Delay = g.isLocal, p.fault, time.Duration(p.under(5000))*time.Millisecond
	p.store, p.process, p.Journal, p.Client = s, process, j, agentapi.New(agentapi.Config{
		BaseURL: &url.URL{Scheme: "http", Host: "127.0.0.1:" + run}, Key: agentapi.NewKey("key"), RequestTimeout: time.Second,
		MaxPollsPerSecond: 1, Dial: g.server.Dial,
	})
	g.service.Lock()
	defer g.service.Unlock()
	g.players[run] = p
	return p
}

func (p *player) under(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.random.IntN(n)
}

func (p *player) happens(rate float64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.random.Float64() < rate
}

func (p *player) pause(most int) { time.Sleep(time.Duration(p.under(most)) * time.Millisecond) }

// die reports whether the run has been killed, perhaps just now. What it has sent is on its way.
func (p *player) die(rate float64) bool {
	isKilled := p.happens(rate)
	p.mu.Lock()
	defer p.mu.Unlock()
	if isKilled && !p.isDead {
		p.isDead = true
		p.End(p.run)
		p.stop()
	}
	return p.isDead
}

// fault is one of the store, or of the run itself, before or after an access.
func (p *player) fault(op string) journal.Fault {
	if p.die(p.rate / 8) {
		return journal.LostRequest
	}
	p.pause(30)
	if !p.happens(p.rate) {
		return journal.None
	}
	faults := []journal.Fault{journal.LostRequest, journal.LostResponse, journal.Repeated, journal.Late, journal.Hangs}
	if f := faults[p.under(len(faults))]; op == "put" {
		return f
	}
	return journal.LostRequest
}

// ServeHTTP is the service, whose responses may be lost, and which may refuse a POST.
func (g *game) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.service.Lock()
	p := g.players[strings.TrimPrefix(r.Host, "127.0.0.1:")]
	g.service.Unlock()
	id := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	if r.Method == http.MethodPost {
		body, _ := io.ReadAll(r.Body)
		name := string(body)[strings.Index(string(body), `"prompt":"`)+len(`"prompt":"`):][:1]
		p.pause(400)
		if p.happens(2 * p.rate) {
			w.WriteHeader([]int{http.StatusBadRequest, http.StatusTooManyRequests}[p.under(2)])
			return
		}
		id = p.accept(name)
		p.pause(400)
	}
	if p.die(p.rate/4) || p.happens(p.rate) {
		panic(http.ErrAbortHandler)
	}
	_, _ = fmt.Fprintf(w, `{"id":%q,"status":"active"}`, id)
}

// accept is a POST that has an effect. It returns its job.
func (p *player) accept(name string) (job string) {
	p.service.Lock()
	defer p.service.Unlock()
	job = "job"
	if p.operations[name].Request.JobID == "" {
		job = fmt.Sprint("job-", name, "-", p.run)
	}
	p.accepted[name] = append(p.accepted[name], job)
	if id := p.operations[name].Record().Claim.ID; p.givenUp[name][id] {
		p.t.Errorf("seed %d: run %s sends what a person has given up", p.seed, p.run)
	}
	return job
}

// try sends a request. It returns what became of it.
func (p *player) try(ctx context.Context, r send.Request) (result string, out send.Outcome) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	operation := p.Begin(ctx, r)
	p.mu.Lock()
	p.stop = cancel
	p.mu.Unlock()
	p.service.Lock()
	p.operations[r.Name] = operation
	p.service.Unlock()
	out = operation.Send(ctx)
	result = map[send.Result]string{
		send.Accepted: "sent", send.Adopted: "adopted", send.AlreadySent: "already sent", send.EarlierUnknown: "unknown",
		send.Unknown: "unknown response", send.NoEffect: "failed", send.JournalUnusable: "failed", send.Unreadable: "failed",
	}[out.Result]
	if result == "adopted" && !p.die(0) {
		p.checkAdopted(r.Name, out.JobID)
	}
	return result, out
}

func (p *player) checkAdopted(name, job string) {
	p.service.Lock()
	defer p.service.Unlock()
	jobs := p.accepted[name]
	if !slices.Contains(jobs, job) || jobs[len(jobs)-1] != job && len(p.givenUp[name]) == 0 {
		p.t.Errorf("seed %d: run %s adopts %s for %s, whose jobs are %v", p.seed, p.run, job, name, jobs)
	}
}

// play lets runs race, and then lets healthy ones, and a person, bring each name to an end.
func (g *game) play(ctx context.Context, rate float64) {
	var all sync.WaitGroup
	for i := range 8 {
		p := g.join(strconv.Itoa(i+1), rate)
		all.Go(func() {
			p.pause(2000)
			for n := range requests {
				r := requests[(n+i)%len(requests)]
				for result := "failed"; result == "failed" && !p.die(p.rate/8); {
					var out send.Outcome
					if result, out = p.try(ctx, r); result == "unknown" && r.JobID == "" && p.happens(0.3) {
						p.Journal.Forget = append(p.Journal.Forget, g.giveUp(r.Name, out.Record.Last.ID))
						result = "failed"
					}
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
		g.finish(ctx, r)
	}
	time.Sleep(2 * time.Hour) // what killed runs offer in vain
}

// giveUp is a person who decides that a request with an unknown outcome does not count.
func (g *game) giveUp(name, id string) string {
	g.service.Lock()
	defer g.service.Unlock()
	if g.givenUp[name] == nil {
		g.givenUp[name] = map[string]bool{}
	}
	g.givenUp[name][id] = true
	return id
}

func (g *game) posts(name string) int {
	g.service.Lock()
	defer g.service.Unlock()
	return len(g.accepted[name])
}

// finish is a healthy run for one name, then one for which a person has decided if need be, and one after them.
func (g *game) finish(ctx context.Context, r send.Request) {
	before, forget := g.posts(r.Name), ""
	result, out := g.join("100", 0).try(ctx, r)
	wanted := []string{"adopted", "already sent", "unknown"}
	if before == 0 {
		wanted = []string{"sent", "unknown"}
	}
	if before > 1+len(g.givenUp[r.Name]) || !slices.Contains(wanted, result) {
		g.t.Errorf("seed %d: %d POSTs of %s, and a healthy run's is %q", g.seed, before, r.Name, result)
	}
	if result == "unknown" {
		if r.JobID != "" { // it counts as sent
			return
		}
		forget = out.Record.Last.ID
		if result, _ := g.join("101", 0, forget).try(ctx, r); result != "sent" || g.posts(r.Name) != before+1 {
			g.t.Errorf("seed %d: %s was given up, and a run's is %q", g.seed, r.Name, result)
		}
	}
	posts := g.posts(r.Name)
	if result, _ := g.join("102", 0, forget).try(ctx, r); result != "adopted" && result != "already sent" || g.posts(r.Name) != posts {
		g.t.Errorf("seed %d: in the end, %s is %q", g.seed, r.Name, result)
	}
}

// What each request costs. (S06)
func TestStress_accesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, isLocal := range []bool{false, true} {
			g := newGame(t, 0, isLocal)
			others := request("a", "")
			others.Arguments = "others"
			for i, row := range []struct {
				request     send.Request
				want        string
				put, putTwo string // in a bucket, and in a folder
			}{
				{request("a", ""), "sent", "prove put put", "prove put put put"},
				{request("a", ""), "adopted", "prove put get get put", "prove put get get put"},
				{others, "sent", "prove put get get put put", "prove put get get put put put"},
				{request("c", "job"), "sent", "get prove put put", "get prove put put put"},
				{request("c", "job"), "already sent", "get", "get"},
			} {
				p := g.join(strconv.Itoa(i+1), 0)
				result, _ := p.try(t.Context(), row.request)
				want := map[bool]string{false: row.put, true: row.putTwo}[isLocal]
				if got := p.store.Took(); result != row.want || got != want {
					t.Errorf("local: %t, %d: %s, %s, want %s, %s", isLocal, i, result, got, row.want, want)
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
		_, created := g.join("1", 0).try(t.Context(), request("a", ""))
		p, puts := g.join("2", 0), 0
		p.store.Fault = func(op string) journal.Fault {
			if op == "put" {
				puts++
			}
			if op == "put" && puts == 2 { // the first one was a claim, which met the record
				if _, err := p.Journal.Remove(t.Context(), journal.Object{Project: "p", Name: "a", JobID: created.JobID}, journal.Leave); err != nil {
					t.Error(err)
				}
			}
			return journal.None
		}
		result, _ := p.try(t.Context(), request("a", ""))
		if r, err := p.Journal.Peek(t.Context(), "p", "a"); result != "adopted" || r.IsFreed() || err != nil {
			t.Errorf("%s, %+v, %v", result, r, err)
		}
	})
}

// Runs without a lock race for names, in a store that loses, repeats and delays what it is sent, and are killed at any moment.
// No name gets two jobs, unless a person has given up the first one, which is not sent any more then; no run adopts a wrong
// one, and afterwards each name has a job again, or a create with an unknown outcome that a person can give up.
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
