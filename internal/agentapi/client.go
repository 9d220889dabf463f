// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package agentapi is a typed client of the agent service: it creates jobs, sends
// them messages and retrieves them. A POST that the service may have accepted is
// never repeated: if its outcome is unknown, the error is ErrUnknownOutcome.
package agentapi

import (
	"context"
	"crypto/x509"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Config is what a Client needs. What may be nil says so; the rest is required.
type Config struct {
	BaseURL           *url.URL       // scheme, host and an optional path prefix
	Key               Key            // sent as a bearer token to BaseURL, and nowhere else
	UserAgent         string         // sent with every request
	RequestTimeout    time.Duration  // for one HTTP exchange, including the response's body
	MaxPollsPerSecond float64        // shared by all calls of PollJob
	RootCAs           *x509.CertPool // nil: the system's
	Dial              Dial           // nil: a net.Dialer
	// Log, if not nil, receives after each exchange what it was, without the key or a prompt.
	Log func(ctx context.Context, fields map[string]any)
}

// Client calls the service. It is safe for concurrent use.
type Client struct {
	config                      Config
	postTransport, getTransport http.RoundTripper
	posts                       sync.Map // of *postLimiter for each project
	gets                        limiter
	polls                       *rate.Limiter
	persisted                   sync.Map    // kinds of failed reads: statuses, and down
	worked                      atomic.Bool // a response had a job, so key and connection are good
}

// New returns a Client. It makes no call.
func New(config Config) *Client {
	post, get := newTransports(config)
	return &Client{
		config:        config,
		postTransport: post,
		getTransport:  get,
		gets:          limiter{base: time.Second, most: time.Minute}, // no limit is documented
		polls:         rate.NewLimiter(rate.Limit(config.MaxPollsPerSecond), max(1, int(config.MaxPollsPerSecond/10))),
	}
}
