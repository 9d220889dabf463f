// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wait

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
)

func TestTerminalStatusEndsTheWait(t *testing.T) {
	t.Parallel()
	for _, status := range []agentapi.Status{agentapi.StatusCompleted, agentapi.StatusArchived, agentapi.StatusFailed} {
		for _, after := range []Event{Resumed, Created} {
			t.Run(fmt.Sprint(status, after), func(t *testing.T) {
				t.Parallel()
				run(t, after, time.Hour, sequence(status), func(r result, _ *Error) {
					if r.is != nil || r.status != status || r.polls != 1 || after == Resumed && r.took != 0 {
						t.Errorf("%+v, want %s by the first poll", r, status)
					}
				})
			})
		}
	}
}

// TestUnknownStatusIsPolledOn is row P01.
func TestUnknownStatusIsPolledOn(t *testing.T) {
	t.Parallel()
	run(t, Created, time.Hour, sequence(agentapi.StatusActive, agentapi.Status("paused"), agentapi.Status("Completed"), agentapi.StatusCompleted), func(r result, _ *Error) {
		if r.is != nil || r.status != agentapi.StatusCompleted || r.polls != 4 {
			t.Errorf("%+v, want completed after 4 polls", r)
		}
	})
	run(t, Created, time.Minute, sequence(agentapi.Status("que\x1bued")), func(r result, failure *Error) {
		if !errors.Is(failure, ErrTimeout) || r.took != time.Minute || failure.LastStatus != "que\x1bued" || r.status != "que\x1bued" {
			t.Errorf("%+v, %v, want a timeout after 1m", r, failure)
		}
		if text := failure.Error(); !strings.Contains(text, "ued") || !strings.Contains(text, "job_1") || !strings.Contains(text, "1m0s") || strings.Contains(text, "\x1b") {
			t.Errorf("the error says %q, want the job, the time and the status, escaped", text)
		}
	})
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	for want, failure := range map[string]*Error{
		"job job_1: the job did not end in time after 1m1s": {JobID: "job_1", Waited: 61499 * time.Millisecond, Err: ErrTimeout},
		`job job_1: the wait was interrupted after 0s, last seen as "` + strings.Repeat("x", 511) + `…"`: {
			JobID: "job_1", LastStatus: agentapi.Status(strings.Repeat("x", 10000)), Err: ErrInterrupted,
		},
	} {
		if got := failure.Error(); got != want {
			t.Errorf("Error() = %q, want %q", got, want)
		}
	}
}

// TestMissingStatus is row P02.
func TestMissingStatus(t *testing.T) {
	t.Parallel()
	none := &agentapi.Job{ID: "job_1"}
	run(t, Created, time.Hour, sequence(agentapi.StatusActive, none, none, agentapi.StatusActive, none, none, none), func(r result, failure *Error) {
		if !errors.Is(failure, ErrNoStatus) || r.polls != 7 || r.status != agentapi.StatusActive || failure.LastStatus != agentapi.StatusActive {
			t.Errorf("%+v, %v, want ErrNoStatus at the third answer in a row", r, failure)
		}
	})
	run(t, Created, time.Hour, sequence(none), func(r result, failure *Error) {
		if !errors.Is(failure, ErrNoStatus) || r.polls != 3 || r.status != "" || failure.LastStatus != "" {
			t.Errorf("%+v, %v, want ErrNoStatus after 3 polls", r, failure)
		}
	})
	run(t, Created, time.Hour, sequence(none, none, agentapi.StatusCompleted), func(r result, _ *Error) {
		if r.is != nil || r.polls != 3 {
			t.Errorf("%+v, want completed after 3 polls", r)
		}
	})
}

// TestFinalFaults are the rows P07, P09 and P11: one poll, and the reason.
func TestFinalFaults(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault error
		is    error
	}{
		"401":            {fault401, agentapi.ErrUnauthorized},
		"403":            {fault403, agentapi.ErrUnauthorized},
		"400":            {fault(agentapi.Refused, http.StatusBadRequest, nil), agentapi.ErrRefused},
		"404 HTML":       {fault(agentapi.Unusable, http.StatusNotFound, agentapi.ErrWebPage), agentapi.ErrWebPage},
		"wrong job":      {fault(agentapi.Unusable, http.StatusOK, agentapi.ErrWrongJob), agentapi.ErrWrongJob},
		"redirect":       {fault(agentapi.Refused, http.StatusFound, nil), agentapi.ErrRedirected},
		"certificate":    {fault(agentapi.Refused, 0, agentapi.ErrCertificate), agentapi.ErrCertificate},
		"pause too long": {fault(agentapi.Unavailable, 0, agentapi.ErrPauseTooLong), agentapi.ErrPauseTooLong},
		"a bad id":       {fault(agentapi.NotSent, 0, errors.New("bad id")), agentapi.ErrNotSent},
		"another error":  {http.ErrBodyNotAllowed, http.ErrBodyNotAllowed},
	} {
		for _, after := range []Event{Resumed, Created, Messaged} {
			t.Run(fmt.Sprint(name, after), func(t *testing.T) {
				t.Parallel()
				run(t, after, time.Hour, sequence(agentapi.StatusActive, tc.fault), func(r result, failure *Error) {
					if !errors.Is(failure, tc.is) || !errors.Is(failure.LastFault, tc.is) || r.polls != 2 || r.took > 5*time.Second {
						t.Errorf("%+v, %v, want %v at the second poll", r, failure, tc.is)
					}
					if r.status != agentapi.StatusActive || failure.LastStatus != agentapi.StatusActive {
						t.Errorf("the record last seen is %q, want active", r.status)
					}
				})
			})
		}
	}
}

// TestNotFound is row P08 and its limits.
func TestNotFound(t *testing.T) {
	t.Parallel()
	foundAt := func(at time.Duration) func(int, time.Duration) (*agentapi.Job, error) {
		return func(_ int, age time.Duration) (*agentapi.Job, error) {
			if age < at {
				return nil, fault404
			}
			return job(agentapi.StatusCompleted), nil
		}
	}
	t.Run("P08 stored late", func(t *testing.T) {
		t.Parallel()
		run(t, Created, time.Hour, foundAt(50*time.Second), func(r result, _ *Error) {
			if r.is != nil || r.status != agentapi.StatusCompleted || r.polls < 10 {
				t.Errorf("%+v, want completed", r)
			}
		})
	})
	t.Run("never found", func(t *testing.T) {
		t.Parallel()
		run(t, Created, time.Hour, foundAt(24*time.Hour), func(r result, failure *Error) {
			if !errors.Is(failure, agentapi.ErrNotFound) || r.took < NewJobGrace || r.took > NewJobGrace+8*time.Second || r.status != "" {
				t.Errorf("%+v, want ErrNotFound soon after %v", r, NewJobGrace)
			}
		})
	})
	t.Run("P09 gone later", func(t *testing.T) {
		t.Parallel()
		run(t, Created, time.Hour, func(_ int, age time.Duration) (*agentapi.Job, error) {
			if age < 5*time.Minute {
				return job(agentapi.StatusActive), nil
			}
			return nil, fault404
		}, func(r result, failure *Error) {
			if !errors.Is(failure, agentapi.ErrNotFound) || r.took > 5*time.Minute+11*time.Second || r.status != agentapi.StatusActive {
				t.Errorf("%+v, want ErrNotFound at once", r)
			}
		})
	})
	for _, after := range []Event{Resumed, Messaged} {
		t.Run(fmt.Sprintf("P09 after event %d", after), func(t *testing.T) {
			t.Parallel()
			run(t, after, time.Hour, foundAt(50*time.Second), func(r result, failure *Error) {
				if !errors.Is(failure, agentapi.ErrNotFound) || r.polls != 1 {
					t.Errorf("%+v, want ErrNotFound at the first poll", r)
				}
			})
		})
	}
}

// TestTroublesPass is row P06: ten minutes of everything that may pass.
func TestTroublesPass(t *testing.T) {
	t.Parallel()
	troubles := []error{
		fault500, fault(agentapi.Unavailable, 503, nil), fault(agentapi.Unavailable, 502, agentapi.ErrWebPage), fault(agentapi.Unavailable, 408, nil),
		fault(agentapi.Unavailable, 200, errors.New("truncated")), fault(agentapi.Unavailable, 0, errors.New("reset")),
	}
	run(t, Created, time.Hour, func(n int, age time.Duration) (*agentapi.Job, error) {
		if age < 10*time.Minute {
			return nil, troubles[n%len(troubles)]
		}
		return job(agentapi.StatusFailed), nil
	}, func(r result, _ *Error) {
		if r.is != nil || r.status != agentapi.StatusFailed || r.took > 10*time.Minute+11*time.Second {
			t.Errorf("%+v, want the true end soon after ten minutes", r)
		}
	})
	run(t, Created, time.Minute, sequence(agentapi.StatusActive, fault500), func(r result, failure *Error) {
		if !errors.Is(failure, ErrTimeout) || errors.Is(failure, agentapi.ErrUnavailable) || !errors.Is(failure.LastFault, agentapi.ErrUnavailable) || r.took != time.Minute {
			t.Errorf("%+v, %v with %v, want a timeout that remembers the fault", r, failure, failure.LastFault)
		}
	})
	run(t, Created, time.Minute, sequence(fault500, agentapi.StatusActive), func(_ result, failure *Error) {
		if failure.LastFault != nil {
			t.Errorf("the error remembers %v, which has passed", failure.LastFault)
		}
	})
}

// TestRetryAfterOfATroubleIsKept: the service asked for a pause, so it gets one.
func TestRetryAfterOfATroubleIsKept(t *testing.T) {
	t.Parallel()
	busy := fault(agentapi.Unavailable, 503, nil)
	busy.RetryAfter = 2 * time.Minute
	run(t, Resumed, time.Hour, sequence(busy, agentapi.StatusCompleted), func(r result, _ *Error) {
		if r.is != nil || r.took != 2*time.Minute {
			t.Errorf("%+v, want the end after 2m and no more", r)
		}
	})
	run(t, Resumed, time.Hour, sequence(busy, agentapi.StatusActive, agentapi.StatusCompleted), func(r result, _ *Error) {
		if r.is != nil || r.took < 2*time.Minute || r.took > 2*time.Minute+15*time.Second {
			t.Errorf("%+v, want the end soon after 2m", r)
		}
	})
}

// TestLinkWhileActive is row P04.
func TestLinkWhileActive(t *testing.T) {
	t.Parallel()
	early := &agentapi.Job{ID: "job_1", Status: agentapi.StatusActive, PRLink: new("https://x.invalid/1")}
	run(t, Created, time.Hour, sequence(early, early, agentapi.StatusCompleted), func(r result, _ *Error) {
		if r.is != nil || r.status != agentapi.StatusCompleted || r.polls != 3 {
			t.Errorf("%+v, want the wait to go on until completed", r)
		}
	})
}

func TestProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		none := &agentapi.Job{ID: "job_1"}
		p := newPoller(sequence(agentapi.StatusActive, fault500, none, agentapi.Status("paused"), agentapi.StatusCompleted))
		var statuses []agentapi.Status
		var ages []time.Duration
		_, err := Waiter{Poller: p, Schedule: usual}.Wait(t.Context(), Request{ProjectID: "p", JobID: "job_1", After: Created, Progress: func(j *agentapi.Job, age time.Duration) {
			statuses = append(statuses, j.Status)
			ages = append(ages, age)
		}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]agentapi.Status{agentapi.StatusActive, "paused", agentapi.StatusCompleted}, statuses); diff != "" {
			t.Errorf("Progress told of (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]time.Duration{p.at[0], p.at[3], p.at[4]}, ages); diff != "" {
			t.Errorf("at the ages (-want +got):\n%s", diff)
		}
	})
}
