// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// timeFormat is the service's format of times.
const timeFormat = "2006-01-02T15:04:05.000Z"

// Job is the actual job, whatever a stale record or a fault shows.
type Job struct {
	ID, Project, Status string
	Prompts             []string // the create's, then those of the messages
	PullRequest         string   // "" while there is none
	CreatedAt           time.Time
	// EndedAt is when it became completed, archived or failed; zero while it is not.
	EndedAt time.Time
	// FirstTerminalGet is when a GET first showed that it finished. A message that
	// makes the job active again resets it.
	FirstTerminalGet time.Time
}

// job is one job. Everything but the constants is guarded by Server.mu.
type job struct {
	id, project string
	pull        string
	created     time.Time

	turns   int // prompts that were let in, also those still on their way into prompts
	prompts []string
	script  Script

	status           string // from endsAt on; active before
	endsAt           time.Time
	firstTerminalGet time.Time
	wasCompleted     bool // in this turn, before it was archived

	staleRecord map[string]any
	staleUntil  time.Time
}

func terminal(status string) bool {
	return status == statusCompleted || status == statusArchived || status == statusFailed
}

// begin starts a turn: the job is active for as long as the script says.
func (j *job) begin(prompt string, script Script, now time.Time) {
	if len(j.prompts) > 0 && script.Stale > 0 {
		j.staleRecord, _ = j.record(now)
		j.staleUntil = now.Add(script.Stale)
	} else {
		j.staleRecord = nil
	}
	j.prompts = append(j.prompts, prompt)
	j.script = script
	j.status = cmp.Or(script.Status, statusCompleted)
	j.endsAt = now.Add(script.Duration)
	j.firstTerminalGet, j.wasCompleted = time.Time{}, false
}

// force sets the status from outside.
func (j *job) force(status string, now time.Time) {
	j.wasCompleted = j.statusAt(now) == statusCompleted || j.wasCompleted && status == statusArchived
	j.status, j.endsAt = status, now
	j.firstTerminalGet, j.staleRecord = time.Time{}, nil
}

func (j *job) statusAt(now time.Time) string {
	if now.Before(j.endsAt) {
		return statusActive
	}
	return j.status
}

// pullRequest returns the link, or "" if there is none. A job that was archived while it was active has
// none.
func (j *job) pullRequest(now time.Time) string {
	status := j.statusAt(now)
	if j.script.NoPullRequest || now.Before(j.endsAt.Add(j.script.LinkAfter)) || status != statusCompleted && (status != statusArchived || !j.wasCompleted) {
		return ""
	}
	return j.pull
}

// record returns what the service shows of the job, and whether that is its actual
// final status.
func (j *job) record(now time.Time) (map[string]any, bool) {
	if j.staleRecord != nil && now.Before(j.staleUntil) {
		return j.staleRecord, false
	}
	r := map[string]any{
		"id":         j.id,
		"status":     j.statusAt(now),
		"model":      "simulated-model",
		"source":     map[string]any{"repository": "https://github.com/example/docs", "ref": "main"},
		"prLink":     nil,
		"createdAt":  j.created.UTC().Format(timeFormat),
		"archivedAt": nil,
	}
	if link := j.pullRequest(now); link != "" {
		r["prLink"] = link
	}
	if j.statusAt(now) == statusArchived {
		r["archivedAt"] = j.endsAt.UTC().Format(timeFormat)
	}
	maps.Copy(r, j.script.Extra)
	maps.DeleteFunc(r, func(_ string, value any) bool { return value == (Omit{}) })
	shown, _ := r["status"].(string)
	return r, terminal(shown) && terminal(j.statusAt(now))
}

// snapshot returns the actual job.
func (j *job) snapshot(now time.Time) Job {
	job := Job{
		ID:               j.id,
		Project:          j.project,
		Status:           j.statusAt(now),
		Prompts:          slices.Clone(j.prompts),
		PullRequest:      j.pullRequest(now),
		CreatedAt:        j.created,
		FirstTerminalGet: j.firstTerminalGet,
	}
	if terminal(job.Status) {
		job.EndedAt = j.endsAt
	}
	return job
}

// Jobs returns all actual jobs, in the order of their creation.
func (s *Server) Jobs() []Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	list := make([]Job, len(s.jobs))
	for i, j := range s.jobs {
		list[i] = j.snapshot(now)
	}
	return list
}

// Create starts a job as another client would: no request is recorded.
func (s *Server) Create(project, prompt string) Job {
	script := s.scriptFor(prompt, 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	return s.addJob(project, prompt, script, now).snapshot(now)
}

// SetStatus sets a status, in the contract or not, until the next message.
func (s *Server) SetStatus(id, status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.find(id); j != nil {
		j.force(status, time.Now())
	}
}

// Forget removes a job: requests for it then get 404.
func (s *Server) Forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs = slices.DeleteFunc(s.jobs, func(j *job) bool { return j.id == id })
}

// find returns a job, or nil. The caller holds s.mu.
func (s *Server) find(id string) *job {
	if i := slices.IndexFunc(s.jobs, func(j *job) bool { return j.id == id }); i >= 0 {
		return s.jobs[i]
	}
	return nil
}

// addJob starts a job. The caller holds s.mu.
func (s *Server) addJob(project, prompt string, script Script, now time.Time) *job {
	s.created++
	j := &job{
		id:      "job_" + strings.ToLower(rand.Text()),
		project: project,
		pull:    fmt.Sprintf("https://github.com/example/docs/pull/%d", s.created),
		created: now,
		turns:   1,
	}
	j.begin(prompt, script, now)
	s.jobs = append(s.jobs, j)
	return j
}
