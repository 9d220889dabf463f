// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
)

// The requests of records below.
const lastID, claimID = "lastlastlastlast", "claimclaimclaimc"

// has is a record of an earlier run: of a request that the service has accepted, and after which the name has a job.
func has(job, prompt, triggers string, edits ...func(*Record)) *Record {
	r := &Record{
		Project: "p", Name: "n", JobID: job,
		Last: &Request{ID: lastID, Prompt: Hash(lastID, prompt), Arguments: Hash(triggers)},
	}
	for _, edit := range edits {
		edit(r)
	}
	return r
}

func released(r *Record)  { r.Released = true }
func unknown(r *Record)   { r.Last.Unknown = true }
func adopted(r *Record)   { r.Holder = "own" }
func noted(r *Record)     { r.Last.Prompt = PromptHash(r.JobID, "x") } // as a Delete notes the prompt x
func isMessage(r *Record) { r.Last.IsMessage, r.Last.JobID = true, r.JobID }

// left is a record whose job a Delete of a run has left to a create.
func left(by cli.Run) func(*Record) { return func(r *Record) { r.Left = by } }

// claimed is a record under the claim of a sender, which is sent unless it says otherwise.
func claimed(sender, job, prompt string, edits ...func(*Record)) func(*Record) {
	return func(r *Record) {
		r.Claim = &Request{
			ID: claimID, IsMessage: job != "", JobID: job, Prompt: Hash(claimID, prompt), Arguments: Hash(""), Sender: cli.ProcessID{Start: sender},
			SentAt: time.Now(), Deadline: time.Now().Add(time.Minute),
		}
		for _, edit := range edits {
			edit(r)
		}
	}
}

func unsent(r *Record)  { r.Claim.Unsent = true }
func expired(r *Record) { r.Claim.Deadline = time.Now().Add(-time.Second) }

// The table is the protocol: see docs/guides/reliability.md. A plan and an apply see the same.
func TestJudge(t *testing.T) {
	const alive, dead = "alive", "dead"
	free := func(edits ...func(*Record)) *Record { r := has("", "", "", edits...); r.Last = nil; return r }
	newJob, sameJob := create("n", "x"), message("n", "J", "x")
	changed := func(w Wanted, edit func(*Wanted)) Wanted { edit(&w); return w }
	triggered := changed(newJob, func(w *Wanted) { w.Arguments = "2" })
	planned := func(w Wanted) Wanted { w.Prompt, w.IsPromptUnknown = "", true; return w }

	for _, row := range []struct {
		name   string
		record *Record
		wanted Wanted
		forget string
		want   Verdict
	}{
		// Creates, by the rows of the table.
		{"nothing was accepted", free(), newJob, "", Send},
		{"released", has("J", "x", "", released), newJob, "", Send},
		{"accepted, the same request", has("J", "x", ""), newJob, "", Adopt},
		{"… whose prompt the plan does not know", has("J", "x", ""), planned(newJob), "", Adopt},
		{"… after an unknown message with its prompt", has("J", "x", "", isMessage, unknown), newJob, "", Adopt},
		{"… noted by a Delete", has("J", "", "", noted), newJob, "", Adopt},
		{"accepted, another prompt", has("J", "y", ""), newJob, "", Beside},
		{"… noted by a Delete", has("J", "", "", noted), create("n", "y"), "", Beside},
		{"… another request was forgotten", has("J", "y", ""), newJob, "other", Beside},
		{"… of an unknown message", has("J", "y", "", isMessage, unknown), newJob, "", Beside},
		{"accepted, forgotten", has("J", "x", ""), newJob, lastID, Send},
		{"accepted, other triggers", has("J", "x", ""), triggered, "", Beside},
		{"… whose prompt the plan does not know", has("J", "x", ""), planned(triggered), "", Beside},
		{"pending", free(claimed(alive, "", "x")), newJob, "", Wait},
		{"… forgotten too early", free(claimed(alive, "", "x")), newJob, claimID, Wait},
		{"… of this process", free(claimed("me", "", "x")), newJob, "", Wait},
		{"pending until its deadline", free(claimed(alive, "", "x", expired)), newJob, "", UnknownCreate},
		{"… unsent, as far as is known", free(claimed(alive, "", "x", unsent, expired)), newJob, "", UnknownCreate},
		{"pending until its end", free(claimed(dead, "", "x")), newJob, "", UnknownCreate},
		{"… forgotten", free(claimed(dead, "", "x")), newJob, claimID, Send},
		{"… unsent", free(claimed(dead, "", "x", unsent)), newJob, "", Send},
		{"… unsent, over a job", has("J", "x", "", claimed(dead, "", "y", unsent)), newJob, "", Adopt},
		{"… over a job", has("J", "x", "", claimed(dead, "", "x")), newJob, "", UnknownCreate},
		{"… over a released job", has("J", "x", "", released, claimed(dead, "", "x")), newJob, "", UnknownCreate},
		{"… a message with the prompt", has("J", "y", "", claimed(dead, "J", "x")), newJob, "", Adopt},
		{"an unknown create", has("", "x", "", unknown), newJob, "", UnknownCreate},
		{"… of other triggers", has("", "x", "", unknown), triggered, "", UnknownCreate},
		{"… that was forgotten", has("", "x", "", unknown), newJob, lastID, Send},
		{"left by this run", has("J", "x", "", released, left("me")), newJob, "", Adopt},
		{"… noted by a Delete", has("J", "", "", noted, released, left("me")), newJob, "", Adopt},
		{"… whose prompt the plan does not know", has("J", "x", "", released, left("me")), planned(newJob), "", Adopt},
		{"… and another prompt", has("J", "y", "", released, left("me")), newJob, "", Beside},
		{"… and other triggers", has("J", "x", "", released, left("me")), triggered, "", Beside},
		{"… and forgotten", has("J", "x", "", released, left("me")), newJob, lastID, Send},
		{"… and nothing was accepted", free(left("me")), newJob, "", Send},
		{"… with its name, another prompt", has("J", "y", "", left("me")), newJob, "", Beside},
		{"left by another run", has("J", "x", "", released, left("other")), newJob, "", Send},
		{"… with its name", has("J", "x", "", left("other")), newJob, "", Adopt},

		// Messages to J.
		{"message: nothing was accepted", free(), sameJob, "", Send},
		{"message: released, and its run was killed", has("J", "x", "", released, isMessage, unknown), sameJob, "", UnknownMessage},
		{"message: … with another prompt", has("J", "y", "", released), sameJob, "", Send},
		{"message: accepted", has("J", "x", "", isMessage), sameJob, "", AlreadySent},
		{"message: noted by a Delete", has("J", "", "", noted), sameJob, "", AlreadySent},
		{"message: unknown", has("J", "x", "", isMessage, unknown), sameJob, "", UnknownMessage},
		{"N13 message: pending", has("J", "y", "", claimed(alive, "J", "x")), sameJob, "", Wait},
		{"N13 message: pending until its end", has("J", "y", "", claimed(dead, "J", "x")), sameJob, "", UnknownMessage},
		{"message: … unsent", has("J", "y", "", claimed(dead, "J", "x", unsent)), sameJob, "", Send},
		{"message: another prompt", has("J", "y", "", isMessage), sameJob, "", Send},
		{"message: another prompt, unknown", has("J", "y", "", isMessage, unknown), sameJob, "", Send},
		{"message: the plan does not know the prompt", has("J", "x", "", isMessage), planned(sameJob), "", Send},
		{"message: another job", has("K", "x", ""), sameJob, "", OtherJob},
		{"message: … that was forgotten", has("K", "x", ""), sameJob, lastID, Send},
		{"message: … released", has("K", "x", "", released), sameJob, "", Send},
		{"message: an unknown create", has("", "x", "", unknown), sameJob, "", OtherJob},
		{"message: a create until its end", has("J", "x", "", claimed(dead, "", "x")), sameJob, "", OtherJob},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld()
			w.end(dead)
			j, _ := w.open("me")
			if row.forget != "" {
				j.Forget = []string{row.forget}
			}
			before, _ := json.Marshal(row.record)
			got := j.judge(row.record, row.wanted)
			want(t, "verdict", verdicts[got], verdicts[row.want])
			after, _ := json.Marshal(row.record)
			want(t, "record", string(after), string(before))

			row.record.Format = format
			text, _ := json.Marshal(row.record)
			if _, err := w.put(store.Text{Key: key("p", "n")}, text); err != nil {
				t.Fatal(err)
			}
			peeked, r, err := j.Peek(t.Context(), row.wanted)
			if peeked != row.want || r == nil || r.Claim != nil || err != nil {
				t.Errorf("a plan sees %s, %+v, %v", verdicts[peeked], r, err)
			}
			if row.want == Wait {
				return
			}
			if looked, _, err := j.Begin(t.Context(), row.wanted).Look(t.Context()); looked != row.want || err != nil {
				t.Errorf("an apply sees %s, %v", verdicts[looked], err)
			}
		})
	}
}
