// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/place"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

const (
	// distance is how far the bucket is away, each way.
	distance = 30 * time.Millisecond
	// foreign is how many records of other states the bucket holds.
	foreign = 10_000
)

// journal measures what the journal costs: in a folder, and in a bucket that is far away, also
// among many records of other states. AGENT_TEST_S3 names the bucket, as tools/stores.sh sets it.
func (b *bench) journal(ctx context.Context, n int) {
	where, err := url.Parse(os.Getenv("AGENT_TEST_S3"))
	b.check(err)
	if where.Host == "" {
		fmt.Fprintln(os.Stderr, "journal: not measured, because AGENT_TEST_S3 is not set: make bench sets it")
		return
	}
	near, err := url.Parse(where.Query().Get("endpoint"))
	b.check(err)
	far := "s3://" + where.Host + "/bench?region=us-east-1&state=bench&endpoint=" + b.delayed(ctx, near)
	none := map[string]float64{}
	for _, place := range []struct{ name, url string }{{"none", ""}, {"folder", ""}, {"bucket", far}, {"bucket, 10,000 foreign records", far}} {
		if place.name == "bucket, 10,000 foreign records" {
			b.fill(ctx, "s3://"+where.Host+"/bench?region=us-east-1&endpoint="+near.String())
		}
		s := simulator.New(simulator.Options{Key: "mint_bench"})
		server := httptest.NewServer(s)
		env := []string{"AGENT_BASE_URL=" + server.URL, "AGENT_ADMIN_KEY=mint_bench", "AGENT_PROJECT_ID=proj_bench", "AGENT_MAX_NEW_JOBS=1000", "AGENT_JOURNAL_URL=" + place.url}
		dir := b.module("agent_job", n, "prompt", "Write page ${count.index} [simulate: 2s]")
		if place.name == "none" {
			off := "provider \"agent\" {\n  journal {\n    enabled = false\n  }\n}\n"
			b.check(os.WriteFile(filepath.Join(dir, "override.tf"), []byte(off), 0o600))
		}
		for _, what := range []string{"apply", "plan"} {
			args := []string{"plan"} // as most people plan: ten resources at once
			if what == "apply" {
				args = []string{"apply", "-auto-approve", "-parallelism=100"}
			}
			took := b.command(ctx, dir, env, args...).seconds
			if place.name == "none" {
				none[what] = took
			}
			name := fmt.Sprintf("%d jobs, journal: %s: %s", n, place.name, what)
			b.note(name, took, "s", 0)
			b.note(name+", of none", took/none[what], "times", map[string]float64{"apply": 1.08, "plan": 1.1}[what])
		}
		if counts := s.Counts(); counts.Create != n {
			b.check(fmt.Errorf("journal, %s: %d creates", place.name, counts.Create))
		}
		server.Close()
	}
}

// fill gives the bucket records of other states.
func (b *bench) fill(ctx context.Context, url string) {
	bucket, err := place.ParseURL(url)
	b.check(err)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for state := range 100 {
		group.Go(func() error {
			other := bucket.Open(journal.Hash(fmt.Sprint(state)), new(cli.Process))
			for i := range foreign / 100 {
				_, err := other.Put(ctx, store.Text{Key: fmt.Sprint("other-", i)}, []byte("{}"))
				if err != nil && !errors.Is(err, store.ErrConflict) { // an earlier repetition has written it
					return err
				}
			}
			return nil
		})
	}
	b.check(group.Wait())
}

// delayed is the address of a server that is as far away as distance says.
func (b *bench) delayed(ctx context.Context, to *url.URL) string {
	proxy := httputil.NewSingleHostReverseProxy(to) //nolint:gosec // to a server of this machine
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sleep.For(r.Context(), 2*distance) == nil {
			proxy.ServeHTTP(w, r)
		}
	}))
	context.AfterFunc(ctx, server.Close)
	return server.URL
}
