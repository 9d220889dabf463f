// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package agentapi is a typed client of the agent service: it creates jobs, sends
// them messages and retrieves them. A POST that the service may have accepted is
// never repeated: if its outcome is unknown, the error is ErrUnknownOutcome.
package agentapi

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

const (
	// postPause and getPause are the longest first pauses after a 429 without
	// Retry-After. The known limit on POSTs is hourly; none on GETs is documented.
	postPause = 10 * time.Second
	getPause  = time.Second
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
	posts                       sync.Map // of *posts for each project
	gets                        *limiter
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
		gets:          &limiter{base: getPause, most: time.Minute, isRead: true},
		polls:         rate.NewLimiter(rate.Limit(config.MaxPollsPerSecond), max(1, int(config.MaxPollsPerSecond/10))),
	}
}

// Recorder records the outcome of a POST, so that a crash does not lose it. Claim is called
// when an attempt has its turn and a connection, BeforeBody just before its body is sent, and one of
// the others, before anything is logged, when the response names the job, when the attempt had
// no effect, or when its outcome is unknown. After an error of Claim or BeforeBody nothing is sent.
// After one of Claim, no other method is called.
type Recorder interface {
	Claim() error
	BeforeBody() error
	Accepted(jobID string)
	Withdrawn()
	Unknown()
}

// NewJob is the body of the POST that creates a job.
type NewJob struct {
	Prompt string `json:"prompt,omitempty"`
}

// CreateJob starts a job. Once the request is being sent, ctx no longer cancels the
// call, which waits for the response up to the request timeout: a lost response is
// a lost job. The error is an *Error.
func (c *Client) CreateJob(ctx context.Context, projectID string, body NewJob, recorder Recorder) (*Job, error) {
	return c.post(ctx, request{op: OpCreate, projectID: projectID}, body, recorder)
}

// SendMessage sends a follow-up prompt to a job, by the rules of CreateJob.
func (c *Client) SendMessage(ctx context.Context, projectID, jobID, prompt string, recorder Recorder) (*Job, error) {
	return c.post(ctx, request{op: OpMessage, projectID: projectID, jobID: jobID}, NewJob{Prompt: prompt}, recorder)
}

func (c *Client) post(ctx context.Context, r request, body NewJob, recorder Recorder) (*Job, error) {
	if err := r.checkIDs(); err != nil {
		return nil, err
	}
	r.body, _ = json.Marshal(body) // a text can always be encoded
	r.recorder = recorder
	posts := c.postLimiter(r.projectID)
	r.isPaused = func() bool { return posts.pause() > 0 }
	var firstFailure time.Time
	failed, refused := 0, 0
	for {
		job, failure, isTried := c.attempt(ctx, posts, r)
		switch {
		case failure == nil:
			return job, nil
		case errors.Is(failure, ErrRefused) && failure.StatusCode == http.StatusTooManyRequests:
			firstFailure, failed, refused, r.status = time.Time{}, 0, 0, failure.StatusCode
			continue
		case errors.Is(failure, errPaused):
			continue
		case !isTried || !errors.Is(failure, ErrNotSent) || errors.Is(failure, ErrCertificate):
			return nil, failure
		case firstFailure.IsZero():
			firstFailure = time.Now()
		}
		refused++
		if !errors.Is(failure, ErrHandshake) && !errors.Is(failure, ErrProxyRefused) {
			refused = 0
		}
		pause := backoff(failed)
		failed++
		if refused == fewestRefusals || time.Since(firstFailure)+pause > retryLimit || sleep.For(ctx, pause) != nil {
			failure.Lasted = time.Since(firstFailure)
			return nil, failure
		}
	}
}

// attempt sends a POST once, when its turn has come. isTried is false if its turn did not come, or
// if an obstacle stopped it before its body was sent. A panic frees its slot for others, too.
func (c *Client) attempt(ctx context.Context, posts *posts, r request) (_ *Job, _ *Error, isTried bool) {
	sent, err := posts.acquire(ctx)
	if err != nil {
		return nil, r.fail(ErrNotSent, err), false
	}
	got, err := c.doInSlot(ctx, posts, sent, r)
	if got.obstacle != nil {
		if got.recorded {
			r.recorder.Withdrawn()
		}
		return nil, r.fail(ErrNotSent, got.obstacle), false
	}
	job, failure := c.classifyPost(r, got, err)
	switch {
	case failure == nil:
		c.worked.Store(true)
		r.recorder.Accepted(job.ID)
	case errors.Is(failure, ErrUnknownOutcome):
		r.recorder.Unknown()
		err = failure
	case got.recorded:
		r.recorder.Withdrawn()
	}
	c.logExchange(ctx, r, got, job, err, posts.pause())
	return job, failure, true
}

func (c *Client) doInSlot(ctx context.Context, posts *posts, sent time.Time, r request) (got *response, err error) {
	defer func() { posts.release(sent, got) }()
	return c.do(ctx, c.postTransport, r)
}

// postLimiter returns the limiter of a project's POSTs.
func (c *Client) postLimiter(projectID string) *posts {
	value, _ := c.posts.LoadOrStore(projectID, &posts{&limiter{base: postPause, most: time.Hour}, semaphore.NewWeighted(maxConcurrent)})
	limiter, _ := value.(*posts)
	return limiter
}
