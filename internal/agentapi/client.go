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
	"math"
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
	// readTimeout is how long a job is tried to be read.
	readTimeout = 60 * time.Second
	// downTimeout is how long it is tried, once, when another has been tried in vain.
	downTimeout = 10 * time.Second
)

var (
	errNoResponse = errors.New("no response within a minute")
	errStillDown  = errors.New("no response within ten seconds, and none within a minute to an earlier request")
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
	down                        atomic.Bool // a job was tried to be read in vain, and no GET has succeeded since
}

// New returns a Client. It makes no call.
func New(config Config) *Client {
	post, get := newTransports(config)
	return &Client{
		config:        config,
		postTransport: post,
		getTransport:  get,
		gets:          newLimiter(getPause, math.MaxInt64),
		polls:         rate.NewLimiter(rate.Limit(config.MaxPollsPerSecond), max(1, int(config.MaxPollsPerSecond/10))),
	}
}

// Recorder records the outcome of a POST, so that a crash does not lose it. Its
// methods are called just before each attempt is sent, and, before anything is
// logged, when the response names the job, when the attempt had no effect, or
// when its outcome is unknown. After an error of Sending nothing is sent, and no
// other method is called.
type Recorder interface {
	Sending() error
	Accepted(jobID string)
	Withdrawn()
	Unknown()
}

// CreateJob starts a job. Once the request is being sent, ctx no longer cancels the
// call, which waits for the response up to the request timeout: a lost response is
// a lost job. The error is an *Error.
func (c *Client) CreateJob(ctx context.Context, projectID, prompt string, recorder Recorder) (*Job, error) {
	return c.post(ctx, request{op: OpCreate, projectID: projectID}, prompt, recorder)
}

// SendMessage sends a follow-up prompt to a job, by the rules of CreateJob.
func (c *Client) SendMessage(ctx context.Context, projectID, jobID, prompt string, recorder Recorder) (*Job, error) {
	return c.post(ctx, request{op: OpMessage, projectID: projectID, jobID: jobID}, prompt, recorder)
}

func (c *Client) post(ctx context.Context, r request, prompt string, recorder Recorder) (*Job, error) {
	if err := r.checkIDs(); err != nil {
		return nil, err
	}
	r.body, _ = json.Marshal(map[string]string{"prompt": prompt}) // a text can always be encoded
	posts := c.postLimiter(r.projectID)
	var firstFailure time.Time
	for attempt := 0; ; attempt++ {
		job, failure := c.attempt(ctx, posts, r, recorder)
		switch {
		case failure == nil:
			return job, nil
		case errors.Is(failure, ErrRefused) && failure.StatusCode == http.StatusTooManyRequests:
			firstFailure, attempt, r.status = time.Time{}, 0, failure.StatusCode
			continue
		case !errors.Is(failure, ErrNotSent) || errors.Is(failure, ErrCertificate) || failure.Request == "": // it never had its turn
			return nil, failure
		case firstFailure.IsZero():
			firstFailure = time.Now()
		}
		pause := backoff(attempt)
		if time.Since(firstFailure)+pause > retryLimit || sleep.For(ctx, pause) != nil {
			return nil, failure
		}
	}
}

// attempt sends a POST once, when its turn has come. A panic frees the slot for others, too.
func (c *Client) attempt(ctx context.Context, posts *posts, r request, recorder Recorder) (*Job, *Error) {
	if posts.recorded.Acquire(ctx, 1) != nil {
		return nil, r.fail(ErrNotSent, context.Cause(ctx))
	}
	defer posts.recorded.Release(1)
	sent, err := posts.turn(ctx, recorder)
	if err != nil {
		return nil, r.fail(ErrNotSent, err)
	}
	got, err := c.doInSlot(ctx, posts, sent, r)
	job, failure := c.classifyPost(r, got, err)
	switch {
	case failure == nil:
		recorder.Accepted(job.ID)
	case errors.Is(failure, ErrUnknownOutcome):
		recorder.Unknown()
		err = failure.Whole()
	default:
		recorder.Withdrawn()
	}
	c.logExchange(ctx, r, got, err)
	return job, failure
}

func (c *Client) doInSlot(ctx context.Context, posts *posts, sent time.Time, r request) (got *response, err error) {
	defer func() { posts.release(sent, got) }()
	return c.do(ctx, c.postTransport, r)
}

// postLimiter returns the limiter of a project's POSTs.
func (c *Client) postLimiter(projectID string) *posts {
	value, _ := c.posts.LoadOrStore(projectID, &posts{newLimiter(postPause, maxConcurrent), semaphore.NewWeighted(maxRecorded)})
	limiter, _ := value.(*posts)
	return limiter
}

// ReadJob retrieves a job. It retries temporary failures (5xx, 429, a broken connection or
// response) for up to a minute, or until ctx ends. The error is an *Error. While the service
// is down, only the first calls wait that long: a refresh of 1,000 jobs would last for hours.
func (c *Client) ReadJob(ctx context.Context, projectID, jobID string) (*Job, error) {
	timeout, cause, down := readTimeout, errNoResponse, c.down.Load()
	if down {
		timeout, cause = downTimeout, errStillDown
	}
	limited, cancel := context.WithTimeoutCause(ctx, timeout, cause)
	defer cancel()
	for attempt := 0; ; attempt++ {
		job, err := c.getOnce(limited, request{op: OpGet, projectID: projectID, jobID: jobID})
		if down || !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrPauseTooLong) {
			return job, err
		}
		failure, _ := errors.AsType[*Error](err)
		if sleep.For(limited, max(backoff(attempt), failure.RetryAfter)) != nil {
			if ctx.Err() == nil {
				c.down.Store(true)
			}
			return nil, err
		}
	}
}

// PollJob retrieves a job once, within the shared budget of polls. After a 429 it
// waits for the shared pause; other failures are for the caller to retry.
func (c *Client) PollJob(ctx context.Context, projectID, jobID string) (*Job, error) {
	r := request{op: OpGet, projectID: projectID, jobID: jobID}
	if err := c.gets.wait(ctx); err != nil { // first, so that not all polls follow a pause at once
		return nil, r.fail(ErrUnavailable, err)
	}
	if err := c.polls.Wait(ctx); err != nil {
		if ctx.Err() == nil { // the turn would come after the deadline
			<-ctx.Done()
		}
		return nil, r.fail(ErrUnavailable, context.Cause(ctx))
	}
	return c.getOnce(ctx, r)
}

func (c *Client) getOnce(ctx context.Context, r request) (*Job, error) {
	if err := r.checkIDs(); err != nil {
		return nil, err
	}
	for {
		sent, err := c.gets.acquire(ctx)
		if err != nil {
			return nil, r.fail(ErrUnavailable, err)
		}
		got, err := c.do(ctx, c.getTransport, r)
		c.logExchange(ctx, r, got, err)
		c.gets.release(sent, got)
		if got.status != http.StatusTooManyRequests {
			job, err := c.classifyGet(r, got, err)
			if !errors.Is(err, ErrUnavailable) {
				c.down.Store(false)
			}
			return job, err
		}
	}
}
