// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// As many as are used at once are kept, and none for ever.
func TestExchange_pooledConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const callers = 128
		var dials, open atomic.Int64
		c := newClient(t, "http://127.0.0.1", func(config *Config) {
			config.Dial = func(context.Context, string, string) (net.Conn, error) {
				near, far := net.Pipe()
				dials.Add(1)
				open.Add(1)
				go func() {
					defer open.Add(-1)
					reader := bufio.NewReader(far)
					for {
						if _, err := http.ReadRequest(reader); err != nil {
							return
						}
						time.Sleep(time.Second) // until all have asked
						write(far, 200, record)
					}
				}()
				return near, nil
			}
		})
		for range 3 {
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					if _, err := c.GetJob(t.Context(), "p", "job_1"); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			synctest.Wait() // the connections are idle again
		}
		if dials.Load() != callers {
			t.Errorf("%d connections for %d callers", dials.Load(), callers)
		}
		time.Sleep(2 * time.Minute)
		if open.Load() != 0 {
			t.Errorf("%d connections are open after two idle minutes", open.Load())
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// C13: of a response that is too large no more is read than shows it.
func TestExchange_bound(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]error{maxBody: nil, maxBody + 1: errTooLarge, 8 * maxBody: errTooLarge} {
		read := 0
		c := newFakeClient(t, nil)
		c.getTransport = roundTripper(func(*http.Request) (*http.Response, error) {
			rest := strings.NewReader(record + strings.Repeat(" ", size-len(record)))
			body := readerFunc(func(p []byte) (int, error) {
				n, err := rest.Read(p)
				read += n
				return n, err
			})
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(body)}, nil
		})
		if _, err := c.PollJob(t.Context(), "p", "job_1"); !errors.Is(err, want) || read > maxBody+1 {
			t.Errorf("%d bytes: %v after %d, want %v", size, err, read, want)
		}
	}
}
