// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/place"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
)

// game is runs that race for the same names, and a service that counts what it accepts.
type game struct {
	*world

	t       *testing.T
	seed    uint64
	isLocal bool
	isKnown bool               // whether a run has ended: they are on one machine
	real    func() store.Store // instead of the world's; may be nil

	service  sync.Mutex
	accepted map[string][]string        // the jobs of each name's POSTs
	givenUp  map[string]map[string]bool // the requests of each name that a person has given up
	tally    map[string]int
}

// player is a run of the CLI, which may be killed at any access.
type player struct {
	*game

	*Journal

	run  string
	rate float64 // of faults

	mu     sync.Mutex
	random *rand.Rand
	isDead bool
}

// The names of a game: the last one is a message's.
var requests = []Wanted{create("a", "x"), create("b", "x"), message("c", "job", "x")}

func (g *game) join(run string, rate float64, forget ...string) *player {
	j, c := g.open(run, forget...)
	n, _ := strconv.Atoi(run)
	p := &player{game: g, Journal: j, run: run, rate: rate, random: rand.New(rand.NewPCG(g.seed, uint64(n)))}
	if c.isLocal, c.fault, c.delay = g.isLocal, p.fault, time.Duration(p.under(5000))*time.Millisecond; g.real != nil {
		c.real = g.real()
	}
	if !g.isKnown {
		j.process.Ended = func(cli.ProcessID) bool { return false }
	}
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
		p.end(p.run)
	}
	return p.isDead
}

// fault is one of the store, or of the run itself, before or after an access.
func (p *player) fault(op string) fault {
	if p.die(p.rate / 8) {
		return lostRequest
	}
	p.pause(30)
	if !p.happens(p.rate) {
		return none
	}
	if f := []fault{lostRequest, lostResponse, repeated, late, hangs}[p.under(5)]; op == "put" {
		return f
	}
	return lostRequest
}

// post is a POST whose body is being sent. It returns a job, unless the response is lost or the POST refused.
func (p *player) post(w Wanted, id string) (job string, isRefused bool) {
	p.pause(400)
	if p.happens(2 * p.rate) {
		return "", true
	}
	p.service.Lock()
	job = w.JobID
	if job == "" {
		job = fmt.Sprint("job-", w.Name, "-", p.run)
	}
	p.accepted[w.Name] = append(p.accepted[w.Name], job)
	if isDead := p.die(0); p.givenUp[w.Name][id] && !isDead {
		p.t.Errorf("seed %d: run %s sends what a person has given up", p.seed, p.run)
	}
	p.service.Unlock()
	p.pause(400)
	if p.die(p.rate/4) || p.happens(p.rate) {
		return "", false
	}
	return job, false
}

// send does what packages send and agentapi do. It returns what became of the request.
func (p *player) send(ctx context.Context, w Wanted) (result string, r *Record) {
	c := p.Begin(ctx, w)
	result, r = follow(ctx, c, func() string { return p.attempt(c, w) })
	if result == "adopted" && !p.die(0) {
		p.checkAdopted(w, r.JobID)
	}
	return result, r
}

// attempt sends the request once.
func (p *player) attempt(c *Call, w Wanted) (result string) {
	if p.happens(p.rate / 4) { // the process sleeps
		p.pause(100_000)
	}
	if err := c.BeforeBody(); err != nil || p.die(p.rate/8) {
		c.Withdrawn()
		return "failed"
	}
	job, isRefused := p.post(w, c.written.Claim.ID)
	switch {
	case isRefused:
		c.Withdrawn()
		if p.happens(0.5) {
			return "refused"
		}
		p.pause(3000)
		return ""
	case job == "":
		c.Unknown()
		return "unknown response"
	}
	c.Accepted(job)
	return "sent"
}

func (p *player) checkAdopted(w Wanted, job string) {
	p.service.Lock()
	defer p.service.Unlock()
	jobs := p.accepted[w.Name]
	if !slices.Contains(jobs, job) || jobs[len(jobs)-1] != job && len(p.givenUp[w.Name]) == 0 {
		p.t.Errorf("seed %d: run %s adopts %s for %s, whose jobs are %v", p.seed, p.run, job, w.Name, jobs)
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
				w := requests[(n+i)%len(requests)]
				for result := "failed"; result == "failed" && !p.die(p.rate/8); {
					var r *Record
					if result, r = p.send(ctx, w); result == verdicts[UnknownCreate] && p.happens(0.3) {
						p.Forget = append(p.Forget, g.giveUp(w.Name, r.Last.ID))
						result = "failed"
					}
					g.count(result)
				}
			}
			if !p.die(0) {
				p.process.Drain(ctx)
			}
			p.end(p.run)
		})
	}
	all.Wait()
	time.Sleep(2 * time.Minute)
	for _, w := range requests {
		g.finish(ctx, w)
	}
	time.Sleep(2 * retryLimit) // what killed runs offer in vain
}

// giveUp is a person who decides that a request with an unknown outcome does not count.
func (g *game) giveUp(name, id string) string {
	g.service.Lock()
	defer g.service.Unlock()
	if g.givenUp[name] == nil {
		g.givenUp[name] = map[string]bool{}
	}
	g.givenUp[name][id] = true
	g.tally["given up"]++
	return id
}

func (g *game) count(what string) {
	g.service.Lock()
	defer g.service.Unlock()
	g.tally[what]++
}

func (g *game) posts(name string) int {
	g.service.Lock()
	defer g.service.Unlock()
	return len(g.accepted[name])
}

// finish is a healthy run for one name, then one for which a person has decided if need be, and one after them.
func (g *game) finish(ctx context.Context, w Wanted) {
	before, forget := g.posts(w.Name), ""
	result, r := g.join("100", 0).send(ctx, w)
	wanted := []string{"adopted", "already sent", "unknown", "sent, unknown"}
	if before == 0 {
		wanted = []string{"sent", "unknown", "sent, unknown"}
	}
	if before > 1+len(g.givenUp[w.Name]) || !slices.Contains(wanted, result) {
		g.t.Errorf("seed %d: %d POSTs of %s, and a healthy run's is %q", g.seed, before, w.Name, result)
	}
	g.count("finally " + result + map[bool]string{true: " (never accepted)"}[before == 0 && result != "sent"])
	switch result {
	case "sent, unknown": // counts as sent
		return
	case "unknown":
		forget = r.Last.ID
		if result, _ := g.join("101", 0, forget).send(ctx, w); result != "sent" || g.posts(w.Name) != before+1 {
			g.t.Errorf("seed %d: %s was given up, and a run's is %q", g.seed, w.Name, result)
		}
	}
	posts := g.posts(w.Name)
	if result, _ := g.join("102", 0, forget).send(ctx, w); result != "adopted" && result != "already sent" || g.posts(w.Name) != posts {
		g.t.Errorf("seed %d: in the end, %s is %q", g.seed, w.Name, result)
	}
}

// Runs without a lock race for names, in a store that loses, repeats and delays what it is sent, and are killed at any moment.
// No name gets two jobs, unless a person has given up the first one, which is not sent any more then; no run adopts a wrong
// one, and afterwards each name has a job again, or a create with an unknown outcome that a person can give up.
// (X07) EXPLORE=all plays 4,000 seeds, SEEDS any number.
func TestStress(t *testing.T) {
	seeds := numberOfSeeds(t)
	for name, isReal := range map[string]bool{"memory": false, "folder": true} {
		for _, rate := range []float64{0.03, 0.15} {
			t.Run(fmt.Sprint(name, " ", rate), func(t *testing.T) {
				tally, n := map[string]int{}, seeds
				if isReal {
					n = max(1, seeds/50) // it waits for a disk
				}
				for seed := range n {
					g := &game{seed: uint64(seed), isLocal: isReal || seed%3 == 0, isKnown: seed%2 == 0, tally: tally}
					if isReal {
						folder := t.TempDir()
						g.real = func() store.Store { return place.Location{Folder: folder}.Open("scope", new(cli.Process)) }
					}
					synctest.Test(t, func(t *testing.T) {
						g.givenUp = map[string]map[string]bool{}
						g.t, g.world, g.accepted = t, newWorld(), map[string][]string{}
						g.play(t.Context(), rate)
					})
					if t.Failed() {
						break
					}
				}
				t.Logf("%d seeds: %v", n, tally)
			})
		}
	}
}

func numberOfSeeds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("SEEDS")
	if text == "" {
		return map[string]int{"": 300, "more": 1000, "all": 4000}[os.Getenv("EXPLORE")]
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
