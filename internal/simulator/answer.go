// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"time"
)

// answer is a response that was not sent yet.
type answer struct {
	status int
	header http.Header
	body   []byte
	// shownEnd is the job whose end a GET's answer shows, if it does.
	shownEnd *job
}

// success returns an answer with a JSON body.
func success(status int, value any) answer {
	body, err := json.Marshal(value)
	if err != nil {
		// Only a Script.Extra can cause that.
		return failure(http.StatusInternalServerError, err.Error())
	}
	return answer{status: status, body: body}
}

// failure returns an answer with the service's error body.
func failure(status int, text string) answer {
	return success(status, map[string]string{"error": text})
}

func unauthorized() answer { return failure(http.StatusUnauthorized, "invalid or missing API key") }

func notFound() answer { return failure(http.StatusNotFound, "job not found") }

// write sends the answer, cut or slowed down as the fault says.
func (a answer) write(ctx context.Context, w http.ResponseWriter, f Fault) {
	header := w.Header()
	if len(a.body) > 0 {
		header.Set("Content-Type", "application/json")
		header.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	maps.Copy(header, a.header)
	w.WriteHeader(a.status)

	body, cut := a.body, false
	if n := max(f.Truncate, 0); f.Truncate != 0 && n < len(body) {
		body, cut = body[:n], true
	}
	flusher := http.NewResponseController(w)
	if f.Slow <= 0 {
		// A client that has gone is no error of the service, here and below.
		_, _ = w.Write(body)
	} else {
		step := f.Slow / time.Duration(max(len(body), 1))
		for i := range body {
			if err := pause(ctx, step); err != nil {
				panic(http.ErrAbortHandler)
			}
			_, _ = w.Write(body[i : i+1])
			_ = flusher.Flush()
		}
	}
	if cut {
		_ = flusher.Flush()
		panic(http.ErrAbortHandler)
	}
}

// pause waits for d, or until the context ends; then it returns its error.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// liftDeadlines lets a request that is slow on purpose outlive the timeouts of
// its http.Server. The read deadline matters too: when it passes, net/http
// takes the client for gone.
func liftDeadlines(w http.ResponseWriter) {
	c := http.NewResponseController(w)
	// Where there is no connection there is no deadline.
	_ = c.SetReadDeadline(time.Time{})
	_ = c.SetWriteDeadline(time.Time{})
}
