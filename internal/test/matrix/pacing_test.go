// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
)

// another is Terraform's part for one more resource of the same provider configuration.
func (m *Matrix) another() *Matrix {
	more := *m.cli
	n := &Matrix{T: m.T, Server: m.Server, Sim: m.Sim, cli: &more, ctx: m.ctx, config: m.config, dial: m.dial, log: m.log}
	n.forget()
	return n
}

// looks are the times at which a job was asked for.
func (m *Matrix) looks(id string) (times []time.Time) {
	for _, r := range m.Requests() {
		if r.Kind == faultserver.Get && strings.HasSuffix(r.Path, "/"+id) {
			times = append(times, r.Time)
		}
	}
	return times
}

// pacingRows are about the pace of all waits together.
func pacingRows() []Row {
	rows := []Row{
		// Red without: one gate for all GETs of a client (each wait would pause for itself).
		{name: "P10_429_pauses_every_wait", clock: true, script: harness.Always(simulator.Script{Duration: 3 * time.Minute}), Test: func(m *Matrix) {
			second, apart := m.another(), m.another()
			apart.OK(apart.connect())
			apart.forget()
			var pause struct {
				sync.Mutex
				from time.Time
			}
			m.Always(faultserver.Get, func(x *faultserver.Exchange) {
				job, _ := m.Sim.Job(x.Request.URL.Path[strings.LastIndex(x.Request.URL.Path, "/")+1:])
				pause.Lock()
				first := pause.from.IsZero() && job.Prompts[0] != "apart" && time.Since(job.CreatedAt) > 30*time.Second
				if first {
					pause.from = time.Now()
				}
				pause.Unlock()
				if first {
					faultserver.Answer(429, "", "Retry-After: 50")(x)
					return
				}
				faultserver.Healthy(x)
			})
			var waits sync.WaitGroup
			for prompt, n := range map[string]*Matrix{"one": m, "two": second, "apart": apart} {
				waits.Go(func() { n.OK(n.Run(attrs{"prompt": prompt})) })
			}
			waits.Wait()
			if m.Failed() {
				return // there may be no job to count the looks at
			}
			in := func(n *Matrix) (times int) {
				for _, at := range n.looks(n.cli.Get("id").(string)) {
					if at.After(pause.from) && at.Before(pause.from.Add(50*time.Second)) {
						times++
					}
				}
				return times
			}
			if pause.from.IsZero() || in(m) != 0 || in(second) != 0 {
				m.Errorf("%d and %d looks in the pause", in(m), in(second))
			}
			if in(apart) < 3 {
				m.Errorf("another configuration was paused too: %d looks", in(apart))
			}
			m.WantState("completed")
			second.WantState("completed")
			m.WantPosts(3, 0)
		}},
		{name: "P13_1000_waits", clock: true, script: harness.Always(simulator.Script{Duration: 30 * time.Second}), Test: thousandWaits},
	}
	// No code looks at createdAt; red when progress.classify reckons with it.
	for name, skew := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		rows = append(rows, Row{
			name: "P12_created_at_of_a_clock_" + name, clock: true,
			script: func(string, int) simulator.Script {
				created := time.Now().Add(skew).UTC().Format(time.RFC3339)
				return simulator.Script{Duration: 20 * time.Second, Extra: map[string]any{"createdAt": created}}
			},
			Test: func(m *Matrix) {
				start := time.Now()
				m.OK(m.Run(fakecli.With(Job1(), attrs{"timeouts": attrs{"create": "1m"}})))
				m.WantState("completed")
				m.WantPosts(1, 0)
				if took := time.Since(start); took > 25*time.Second {
					m.Errorf("it took %s", took)
				}
			},
		})
	}
	return rows
}

// thousandWaits is at the level of client and wait: nothing of Terraform
// matters here. Red without: polls.Wait in Client.PollJob.
func thousandWaits(m *Matrix) {
	const waits, budget = 1000, 100
	base, err := url.Parse(m.URL)
	if err != nil {
		m.Fatal(err)
	}
	client := agentapi.New(agentapi.Config{
		BaseURL: base, Key: agentapi.NewKey(harness.CanaryKey), RequestTimeout: time.Minute, MaxPollsPerSecond: budget, Dial: m.Dial,
		Log: func(_ context.Context, e agentapi.Exchange) { fmt.Fprintln(m.log, "called the agent service", e) },
	})
	waiter := wait.Waiter{Poller: client, Schedule: wait.Schedule{Min: 800 * time.Millisecond, Max: 10 * time.Second}}
	ctx, cancel := context.WithTimeout(m.ctx, 10*time.Minute)
	defer cancel()
	ids := make([]string, waits)
	for i := range ids {
		ids[i] = m.Sim.Create(harness.Project, "write").ID
	}
	start := time.Now()
	var all sync.WaitGroup
	for _, id := range ids {
		all.Go(func() {
			if _, err := waiter.Wait(ctx, wait.Request{ProjectID: harness.Project, JobID: id, After: wait.Created}); err != nil {
				m.Error(err)
			}
		})
	}
	all.Wait()
	if took := time.Since(start); took > time.Minute {
		m.Errorf("the last of the waits took %s", took)
	}
	var times []time.Time
	last := map[string]time.Time{}
	for _, r := range m.Requests() {
		times = append(times, r.Time)
		if gap := r.Time.Sub(cmp.Or(last[r.Path], start)); gap > 25*time.Second {
			m.Errorf("%s was not looked at for %s", r.Path, gap)
		}
		last[r.Path] = r.Time
	}
	if len(last) != waits {
		m.Errorf("%d of the jobs were looked at", len(last))
	}
	slices.SortFunc(times, time.Time.Compare)
	for i := budget + budget/10 + 1; i < len(times); i++ { // the budget, and its burst of a tenth of a second
		if within := times[i].Sub(times[i-budget-budget/10-1]); within < time.Second {
			m.Fatalf("more than %d polls within %s", budget, within)
		}
	}
}
