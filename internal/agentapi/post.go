// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
)

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

// PostBody is the body of a POST. That of a message is the prompt alone.
type PostBody struct {
	Prompt string `json:"prompt,omitempty"`
}

// CreateJob starts a job. Once the request is being sent, ctx no longer cancels the
// call, which waits for the response up to the request timeout: a lost response is
// a lost job. The error is an *Error.
func (c *Client) CreateJob(ctx context.Context, projectID string, body PostBody, recorder Recorder) (*Job, error) {
	return c.post(ctx, apiCall{op: OpCreate, projectID: projectID}, body, recorder)
}

// SendMessage sends a follow-up prompt to a job, by the rules of CreateJob.
func (c *Client) SendMessage(ctx context.Context, projectID, jobID, prompt string, recorder Recorder) (*Job, error) {
	return c.post(ctx, apiCall{op: OpMessage, projectID: projectID, jobID: jobID}, PostBody{Prompt: prompt}, recorder)
}

func (c *Client) post(ctx context.Context, call apiCall, body PostBody, recorder Recorder) (*Job, error) {
	if err := call.checkIDs(); err != nil {
		return nil, err
	}
	call.body, _ = json.Marshal(body) // a text can always be encoded
	call.recorder = recorder
	posts := c.postLimiter(call.projectID)
	call.isPaused = func() bool { return posts.pause() > 0 }
	for soFar := (retries{}); ; {
		job, failure := c.attempt(ctx, posts, call)
		switch {
		case failure == nil:
			return job, nil
		case errors.Is(failure, ErrRefused) && failure.StatusCode == http.StatusTooManyRequests:
			soFar, call.status = retries{}, failure.StatusCode
		case errors.Is(failure, errPaused): // its next turn comes after the pause
		case !mayRetry(failure) || !soFar.pause(ctx, failure):
			return nil, failure
		}
	}
}

// attempt sends a POST once, when its turn has come.
func (c *Client) attempt(ctx context.Context, posts *postLimiter, call apiCall) (*Job, *Error) {
	if err := posts.acquire(ctx); err != nil {
		return nil, call.fail(ErrNotSent, err)
	}
	defer posts.slots.Release(1) // also if the recorder panics
	got, err := c.exchange(ctx, c.postTransport, call)
	posts.responded(got)
	job, failure := c.classifyPost(call, got, err)
	switch {
	case failure == nil:
		c.worked.Store(true)
		call.recorder.Accepted(job.ID)
	case errors.Is(failure, ErrUnknownOutcome):
		call.recorder.Unknown()
	case got.isClaimed:
		call.recorder.Withdrawn()
	}
	c.logExchange(ctx, call, got, job, failure, posts.pause())
	return job, failure
}

// postLimiter returns the limiter of a project's POSTs. Their known limit is hourly.
func (c *Client) postLimiter(projectID string) *postLimiter {
	value, _ := c.posts.LoadOrStore(projectID, &postLimiter{
		limiter: limiter{base: 10 * time.Second, most: time.Hour}, slots: semaphore.NewWeighted(maxConcurrent),
	})
	return value.(*postLimiter) //nolint:errcheck,forcetypeassert // nothing else is stored there
}
