// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

const prompt = "Change no files and open no pull request. Reply with one sentence."

// kit is a service and what was found out about it.
type kit struct {
	client             *http.Client
	base, project, key string
	patience           time.Duration
	progress           io.Writer
	rows               []row
}

// row is a line of the table.
type row struct {
	assumption, expected, seen string
	broken                     bool
}

// note adds a row. The key is masked: a table is made to be published.
func (k *kit) note(holds bool, assumption, expected, seen string) {
	seen = strings.ReplaceAll(seen, k.key, "***")
	k.rows = append(k.rows, row{assumption, expected, seen, !holds})
	fmt.Fprintf(k.progress, "%s: %s\n", assumption, seen)
}

// response is what a request led to.
type response struct {
	status int
	body   []byte
	record map[string]any // nil unless the body is one JSON object
	err    error
}

func (r response) text(field string) string {
	text, _ := r.record[field].(string)
	return text
}

func (r response) accepted() bool { return r.status/100 == 2 && r.text("id") != "" }

func (r response) terminal() bool {
	return slices.Contains([]string{"completed", "archived", "failed"}, r.text("status"))
}

// String has nothing that the service wrote, which might be private.
func (r response) String() string {
	if r.err != nil {
		return r.err.Error()
	}
	return fmt.Sprintf("%d, %s", r.status, map[bool]string{true: "JSON", false: "not a JSON object"}[r.record != nil])
}

// call sends a request once: a POST if there is a prompt.
func (k *kit) call(ctx context.Context, key, path string, prompt ...string) (r response) {
	method, text := http.MethodGet, []byte(nil)
	for _, p := range prompt {
		method = http.MethodPost
		text, _ = json.Marshal(map[string]string{"prompt": p}) // strings can always be encoded
	}
	request, err := http.NewRequestWithContext(ctx, method, k.base+path, bytes.NewReader(text))
	if err != nil {
		return response{err: err}
	}
	request.GetBody = nil // net/http cannot send it again
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	got, err := k.client.Do(request)
	if err != nil {
		return response{err: errors.Unwrap(err)} // without the URL
	}
	defer got.Body.Close()
	if got.StatusCode == http.StatusTooManyRequests {
		pause := got.Header.Get("Retry-After")
		k.note(regexp.MustCompile(`^(\d*|\w+, .+ GMT)$`).MatchString(pause), "Retry-After of a 429", "none, seconds or a date", fmt.Sprintf("%q", pause))
	}
	r.status = got.StatusCode
	if r.body, r.err = io.ReadAll(io.LimitReader(got.Body, 1<<20)); json.Unmarshal(r.body, &r.record) != nil {
		r.record = nil
	}
	return r
}

// refused notes whether a request was refused with a status and an error in JSON.
func (k *kit) refused(what string, status int, r response) bool {
	k.note(r.status == status && r.record != nil, what, fmt.Sprintf("%d, JSON", status), r.String())
	return r.status == status && r.record != nil
}

// check checks everything that it can. The error says why it stopped early.
func (k *kit) check(ctx context.Context) error {
	wrong, start := k.key+"-wrong", "/v2/agent/"+url.PathEscape(k.project)+"/job"
	jobs, unknown := start+"/", start+"/job_00000000000000000000"
	// First what costs nothing: it shows whether URL, key and project are right.
	if !k.refused("reading an unknown job", http.StatusNotFound, k.call(ctx, k.key, unknown)) {
		return errors.New("no job was started; are URL, key and project right?")
	}
	k.refused("a message to an unknown job", http.StatusNotFound, k.call(ctx, k.key, unknown+"/message", prompt))
	k.refused("reading with a wrong key", http.StatusUnauthorized, k.call(ctx, wrong, unknown))
	k.refused("starting a job with a wrong key", http.StatusUnauthorized, k.call(ctx, wrong, start, prompt))
	k.refused("starting a job with an empty prompt", http.StatusBadRequest, k.call(ctx, k.key, start, ""))

	sent, created := time.Now(), k.call(ctx, k.key, start, prompt)
	k.note(created.accepted(), "starting a job", "2xx, a record with an id", created.String())
	if !created.accepted() {
		return errors.New("without its record nothing more can be checked; the job may be running")
	}
	fields := wrongFields(created)
	k.note(fields == "", "the record is whole", "each field, with its type", cmp.Or(fields, "yes"))
	id := created.text("id")
	path := jobs + url.PathEscape(id)
	k.note(regexp.MustCompile("^[A-Za-z0-9._~!$&'()*+,;=:@-]{1,256}$").MatchString(id), "an id fits in a path", "1 to 256 letters, digits and punctuation",
		fmt.Sprintf("%d characters", len(id)))
	other := k.call(ctx, k.key, start, prompt)
	k.note(other.accepted() && other.text("id") != id, "the same prompt again starts another job", "2xx, another id",
		fmt.Sprintf("%s, another id: %t", other, other.text("id") != id))

	read := k.readNew(ctx, path, sent)
	k.note(read.accepted() && read.text("id") == id && time.Since(sent) < time.Minute, "reading a new job", "2xx, its record, in less than 60 s", since(sent, read.String()))
	otherPath := jobs + url.PathEscape(other.text("id"))
	if other.accepted() {
		k.messageActive(ctx, otherPath, other.text("id"), sent)
	}
	job := k.finish(ctx, "the job finishes", path, sent)
	if other.accepted() {
		k.finish(ctx, "the other job finishes", otherPath, sent)
	}
	link, err := url.Parse(job.text("prLink"))
	k.note(job.record["prLink"] == nil || err == nil && link.Host != "", "prLink of the finished job", "null or a URL", fmt.Sprintf("null: %t", job.record["prLink"] == nil))
	if !job.terminal() {
		return errors.New("it got no further message, because it has not finished")
	}

	denied := k.call(ctx, wrong, path+"/message", prompt)
	after := k.call(ctx, k.key, path).text("status")
	k.note(denied.status == http.StatusUnauthorized && denied.record != nil && after == job.text("status"),
		"a message with a wrong key", "401, JSON, and the job stays finished", denied.String()+", the job is "+after)
	sent, job = time.Now(), k.call(ctx, k.key, path+"/message", prompt)
	k.note(isMessage(job, id), "a message to a finished job", "2xx, its record; or refused: 4xx, JSON", job.String())
	if job.accepted() {
		// What the message's own response shows does not count: other servers may handle the reads.
		for job = k.call(ctx, k.key, path); job.text("status") != "active" && time.Since(sent) < 2*time.Minute && sleep.For(ctx, time.Second) == nil; {
			job = k.call(ctx, k.key, path)
		}
		k.note(job.text("status") == "active" && time.Since(sent) < time.Minute, "the record from before the message is shown", "for less than 60 s, then active",
			since(sent, job.text("status")))
		k.finish(ctx, "the job finishes again", path, sent)
	}
	list := k.call(ctx, k.key, "/v1/agent/"+url.PathEscape(k.project)+"/jobs")
	k.note(true, "version 1 lists the job", "not documented", fmt.Sprintf("%s, with the job: %t", list, strings.Contains(string(list.body), id)))
	return ctx.Err()
}

// readNew reads a job until it is found.
func (k *kit) readNew(ctx context.Context, path string, sent time.Time) response {
	read := k.call(ctx, k.key, path)
	for read.status == http.StatusNotFound && time.Since(sent) < 2*time.Minute && sleep.For(ctx, time.Second) == nil {
		read = k.call(ctx, k.key, path)
	}
	return read
}

// messageActive sends a message to a job that a read has just shown active. It may finish in between, so a refusal holds
// too, and the row says what the job was then.
func (k *kit) messageActive(ctx context.Context, path, id string, created time.Time) {
	const what, expected = "a message to an active job", "2xx, its record; or refused: 4xx, JSON"
	if before := k.readNew(ctx, path, created); before.text("status") != "active" {
		k.note(before.terminal(), what, expected, "not checked: "+cmp.Or(before.text("status"), before.String()))
		return
	}
	r := k.call(ctx, k.key, path+"/message", prompt)
	k.note(isMessage(r, id), what, expected, r.String()+", then "+k.call(ctx, k.key, path).text("status"))
}

// isMessage reports whether a response to a message is one that the contract allows.
func isMessage(r response, id string) bool {
	return r.accepted() && r.text("id") == id || r.status/100 == 4 && r.record != nil
}

// finish polls a job until it has finished, and notes how long that took.
func (k *kit) finish(ctx context.Context, what, path string, sent time.Time) (r response) {
	early := "" // a link before the job has finished
	for !r.terminal() && time.Since(sent) < k.patience && sleep.For(ctx, time.Second) == nil {
		if r = k.call(ctx, k.key, path); !r.terminal() && r.record["prLink"] != nil {
			early = ", prLink before that"
		}
	}
	k.note(r.terminal() && early == "", what, "completed, archived or failed; prLink is null before",
		since(sent, cmp.Or(r.text("status"), r.String()))+early)
	return r
}

// wrongFields names the fields of a new job's record that are missing or not as the contract says.
func wrongFields(r response) string {
	source, _ := r.record["source"].(map[string]any)
	_, isText := source["repository"].(string)
	created, err := time.Parse(time.RFC3339, r.text("createdAt"))
	var wrong []string
	for field, ok := range map[string]bool{
		"status":     r.text("status") == "active" || r.terminal(),
		"source":     isText && (source["ref"] == nil || source["ref"] != ""),
		"model":      r.text("model") != "",
		"prLink":     r.record["prLink"] == nil || r.terminal(),
		"createdAt":  err == nil && created.Location() == time.UTC,
		"archivedAt": r.record["archivedAt"] == nil || r.text("status") == "archived",
	} {
		if _, has := r.record[field]; !has || !ok {
			wrong = append(wrong, field)
		}
	}
	slices.Sort(wrong)
	return strings.Join(wrong, ", ")
}

func since(start time.Time, what string) string {
	return fmt.Sprintf("%s after %s", what, time.Since(start).Round(100*time.Millisecond))
}
