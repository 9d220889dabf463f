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

// isGet matches the polls of a job.
func isGet(id string) func(faultserver.Request) bool {
	return func(r faultserver.Request) bool {
		return r.Kind == faultserver.Get && strings.HasSuffix(r.Path, "/"+id)
	}
}

// pacingRows are about the pace of all waits together.
func pacingRows() []Row {
	rows := []Row{
		// Red without: one gate for all GETs of a client (each wait would pause for itself).
		{name: "P10_429_pauses_every_wait", clock: true, script: harness.Always(simulator.Script{Duration: 3 * time.Minute}), Test: func(m *Matrix) {
			apart := m.other()
			m.OK(m.connect()) // another provider configuration for the others
			jobs := map[string]*fakecli.CLI{"one": m.cli, "two": m.other(), "apart": apart}
			var from time.Time // of the pause
			var once sync.Once
			m.Always(faultserver.Get, func(x *faultserver.Exchange) {
				play := faultserver.Healthy
				job, _ := m.Sim.Job(x.Request.URL.Path[strings.LastIndex(x.Request.URL.Path, "/")+1:])
				if job.Prompts[0] != "apart" && time.Since(job.CreatedAt) > 30*time.Second {
					once.Do(func() { from, play = time.Now(), faultserver.Answer(429, "", "Retry-After: 50") })
				}
				play(x)
			})
			var waits sync.WaitGroup
			for prompt, c := range jobs {
				waits.Go(func() {
					if diags := c.Run(m.ctx, attrs{"prompt": prompt}); len(diags) > 0 {
						m.Error(fakecli.Text(diags))
					}
				})
			}
			waits.Wait()
			for prompt, c := range jobs {
				polls := m.times(func(r faultserver.Request) bool {
					return isGet(fmt.Sprint(c.Get("id")))(r) && r.Time.After(from) && r.Time.Before(from.Add(50*time.Second))
				})
				if c.Get("status") != "completed" || from.IsZero() || prompt == "apart" && len(polls) < 3 || prompt != "apart" && len(polls) > 0 {
					m.Errorf("job %s is %v, and was polled %d times in the pause", prompt, c.Get("status"), len(polls))
				}
			}
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
				m.wantEnd("completed", 1, 0)
				m.wantTook(start, 0, 25*time.Second)
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
	m.wantTook(start, 0, time.Minute)
	var times []time.Time
	last := map[string]time.Time{}
	for _, r := range m.Requests() {
		times = append(times, r.Time)
		if gap := r.Time.Sub(cmp.Or(last[r.Path], start)); gap > 25*time.Second {
			m.Errorf("%s was not polled for %s", r.Path, gap)
		}
		last[r.Path] = r.Time
	}
	if len(last) != waits {
		m.Errorf("%d of the jobs were polled", len(last))
	}
	slices.SortFunc(times, time.Time.Compare)
	for i := budget + budget/10 + 1; i < len(times); i++ { // the budget, and its burst of a tenth of a second
		if within := times[i].Sub(times[i-budget-budget/10-1]); within < time.Second {
			m.Fatalf("more than %d polls within %s", budget, within)
		}
	}
}
