// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !race

package lives

import "slices"

// model is what a user knows who has read the guides.
type model struct {
	journal string
	refuses int            // messages to completed jobs, with this status
	rows    map[string]int // of the tables, how often each applied
	state   *state         // as stored
	sent    []*request
}

// state is what the state shows of a job.
type state struct {
	job, status string
	prompt      string // the last one that is recorded; empty: the job was imported
	triggers    bool
	tainted     bool
	unconfirmed bool       // a message may not have arrived
	refused     string     // the last prompt that it refused when it had finished
	closes      bool       // it refuses messages
	writeOnly   bool       // the prompt is
	shows       []*request // a later run that reads this state removes them from the journal
}

// request is a POST that the service may have accepted.
type request struct {
	job         string // that it started or reached; empty: unknown
	message     bool
	named       bool // a create
	prompt      string
	triggers    bool
	known       bool // the service's response arrived
	superfluous bool // its entry: a later run has read a state that shows the request
	turn        int
}

// want is what the plan of a turn asks for.
type want int

const (
	nothing want = iota
	newJob
	message
	record   // the prompt of an imported job
	rejected // while applying, before anything is sent
)

// verdict says whether a run fails.
type verdict string

const (
	succeeds verdict = "succeeds"
	fails    verdict = "fails"
	either   verdict = "either"
)

// expected is what the guides promise of a turn.
type expected struct {
	want              want
	replaces          bool
	creates, messages int
	run               verdict
	warns             bool     // the plan
	unconfirmed       bool     // the plan says it of a message
	names             []string // jobs that the plan must name
}

// situation is a turn on what it finds.
type situation struct {
	turn
	*model

	number int
	status func(job string) string // what the service says: gone if it does not know the job
}

// changes is the first table of lifecycle.md. The first row that applies counts.
var changes = []struct {
	change string
	when   func(s situation) bool
	want   want
}{
	{"new resource", func(s situation) bool { return s.state == nil }, newJob},
	{"failed create", func(s situation) bool { return s.state.tainted }, newJob},
	{"-replace", func(s situation) bool { return s.Does == replace }, newJob},
	{"triggers", func(s situation) bool { return s.state.prompt != "" && s.Triggers != s.state.triggers }, newJob},
	{"prompt in ignore_changes", func(s situation) bool { return s.Ignored }, nothing},
	{"import", func(s situation) bool { return s.state.prompt == "" }, record},
	{"unknown prompt, closed job", func(s situation) bool { return s.Unknown && !s.WriteOnly && s.closed() }, newJob},
	{"earlier prompt, after a refused message", func(s situation) bool { return s.restored() }, nothing},
	{"same prompt", func(s situation) bool { return s.state.prompt == s.prompt() }, nothing},
	{"unknown prompt_wo, closed job", func(s situation) bool { return s.Unknown && s.closed() && s.leftMessage() == nil }, rejected},
	{"message of an earlier run", func(s situation) bool { return s.leftMessage() != nil }, message},
	{"new prompt, after a refused message", func(s situation) bool { return s.state.closes }, newJob},
	{"new prompt, closed job", func(s situation) bool { return s.closed() }, newJob},
	{"new prompt", func(situation) bool { return true }, message},
}

// posts is the table "Sending" of reliability.md.
var posts = map[string]struct{ sent, answered bool }{
	"":         {sent: true, answered: true},
	refused:    {},
	invalid:    {},
	lost:       {sent: true},
	notArrived: {sent: true}, // as far as anybody knows
}

// leftovers is the table of reliability.md that says what follows what an earlier run has
// left in the journal for the same request.
var leftovers = []struct {
	left string
	when func(s situation, r *request) bool
	then then
}{
	{"message without a response", func(_ situation, r *request) bool { return r.message && !r.known }, countsAsSent},
	{"request without a response", func(_ situation, r *request) bool { return !r.known }, stops},
	{"job with another prompt", func(s situation, r *request) bool {
		return !r.message && s.status(r.job) != gone && r.prompt != s.prompt()
	}, stops},
	{"job that cannot be read", func(s situation, r *request) bool { return s.status(r.job) == gone }, stops},
	{"accepted message", func(_ situation, r *request) bool { return r.message }, takesOver},
	{"job", func(situation, *request) bool { return true }, takesOver},
}

// then is what an apply does with what an earlier run has left.
type then int

const (
	stops then = iota
	takesOver
	countsAsSent
)

func (s situation) follow(r *request) then {
	for _, row := range leftovers {
		if row.when(s, r) {
			s.rows[row.left]++
			return row.then
		}
	}
	return stops
}

// waits are the tables "Failed jobs" and "Timeouts and interrupted runs" of lifecycle.md.
var waits = []struct {
	when      string
	applies   func(s situation, end string, creating bool) bool
	run       verdict
	isTainted bool
}{
	{`failed, on_failure = "warn"`, func(s situation, end string, _ bool) bool { return end == failed && s.OnFailure == "warn" }, succeeds, false},
	{"failed, created by this run", func(_ situation, end string, creating bool) bool { return end == failed && creating }, fails, true},
	{"failed", func(_ situation, end string, _ bool) bool { return end == failed }, fails, false},
	{"finished", func(_ situation, end string, _ bool) bool { return end == completed || end == archived }, succeeds, false},
	{"stopped early, created by this run", func(_ situation, _ string, creating bool) bool { return creating }, succeeds, false},
	{"stopped early", func(situation, string, bool) bool { return true }, fails, false},
}

func (s situation) closed() bool {
	return s.state.status == failed || s.state.status == archived || s.state.closes
}

// refusals are the statuses of refused messages.
var refusals = map[string]int{refused: 409, invalid: 422}

// refusal is the status with which the turn's message is refused; 0: it is accepted.
func (s situation) refusal() int {
	if s.Post == "" && ended(s.state.status) {
		return s.refuses
	}
	return refusals[s.Post]
}

// restored reports whether the prompt is that before a refused one. One in ignore_changes is that of the state.
func (s situation) restored() bool {
	isSame := s.state.prompt == s.prompt()
	if s.Ignored {
		isSame = s.state.prompt != "" && !s.state.writeOnly
	}
	return isSame && s.state.refused != ""
}

func ended(status string) bool { return status == completed || status == failed || status == archived }

// leftCreates and leftMessage are what the journal has of earlier runs, for what the turn
// may want.
func (s situation) leftCreates() []*request {
	return s.left(func(r *request) bool {
		return !r.message && r.named == s.Named && r.triggers == s.Triggers && (s.Named || r.prompt == s.prompt())
	})
}

// namesakes are creates that one with a name starts a job beside.
func (s situation) namesakes() []*request {
	return s.left(func(r *request) bool {
		isUnnamed := !r.named && r.triggers == s.Triggers && r.prompt == s.prompt()
		return s.Named && !r.message && (isUnnamed || r.named && r.triggers != s.Triggers)
	})
}

func (s situation) leftMessage() *request {
	found := s.left(func(r *request) bool { return r.message && r.prompt == s.prompt() && r.job == s.state.job })
	return slices.Concat(found, []*request{nil})[0]
}

// left returns requests with a response first.
func (s situation) left(match func(*request) bool) (found []*request) {
	for _, known := range []bool{true, false} {
		for _, r := range s.sent {
			if !r.superfluous && r.turn != s.number && r.known == known && match(r) {
				found = append(found, r)
			}
		}
	}
	return found
}

// play says what the guides promise of a turn, and changes the model accordingly. A new
// job is called "new".
func (m *model) play(t turn, number int, status func(string) string) expected {
	s := situation{t, m, number, status}
	x := expected{run: succeeds}
	before := m.state
	if m.state != nil && t.Does != importJob && t.Does != stateRm {
		s.refresh(&x)
	}
	switch t.Does {
	case refresh:
	case destroy, stateRm:
		m.state = nil
	case importJob:
		m.state = &state{job: imported, status: active}
	default:
		s.apply(&x)
	}
	if t.Killed && t.Does != stateRm && t.Does != importJob {
		m.state = before
	}
	return x
}

// The ids of jobs that the model cannot know yet.
const (
	fresh    = "new"
	imported = "imported"
)

func (s situation) refresh(x *expected) {
	for _, r := range s.state.shows {
		r.superfluous = true
	}
	now := *s.state
	s.state = &now
	x.warns = s.status(now.job) == gone
	if status := s.status(now.job); status != gone {
		now.unconfirmed = now.unconfirmed && (!ended(now.status) || ended(status))
		if !ended(status) {
			now.refused, now.closes = "", false
		}
		now.status = status
	}
}

func (s situation) apply(x *expected) {
	for _, row := range changes {
		if row.when(s) {
			x.want = row.want
			s.rows[row.change]++
			break
		}
	}
	x.replaces = x.want == newJob && s.state != nil
	x.unconfirmed = x.want == nothing && !s.Unknown && s.state.unconfirmed
	x.warns = x.warns || x.want == message || x.want == nothing && s.state.status == failed
	if !s.Unknown && !s.Ignored {
		left := s.leftCreates()
		if x.want == newJob && len(left) == 0 && s.Does != replace { // of which Terraform shows the plan without a warning
			left = s.namesakes()
		}
		for _, r := range left {
			if r.known && (s.state == nil || s.state.job != r.job) {
				x.names = append(x.names, r.job)
			}
		}
	}
	switch x.want {
	case newJob:
		s.create(x)
	case message:
		s.message(x)
	case rejected:
		x.run = fails
	case record, nothing:
		if s.restored() {
			s.state.refused, s.state.closes = "", false
		}
		if !s.Ignored {
			s.state.prompt, s.state.writeOnly = s.prompt(), s.WriteOnly
		}
		s.state.triggers = s.Triggers
		if !ended(s.state.status) {
			s.wait(x, false)
		}
	}
}

func (s situation) create(x *expected) {
	s.state = nil
	if left := s.leftCreates(); len(left) > 0 {
		if r := left[0]; s.follow(r) == stops {
			x.run = fails
		} else {
			s.started(r, s.status(r.job))
			s.wait(x, true)
		}
		return
	}
	x.creates = 1
	if r := s.post(x, &request{job: fresh}); r != nil && r.known {
		s.started(r, active)
		s.wait(x, true)
	}
}

func (s *situation) started(r *request, status string) {
	s.state = &state{job: r.job, status: status, prompt: s.prompt(), writeOnly: s.WriteOnly, triggers: s.Triggers}
	s.shows(r)
}

func (s situation) message(x *expected) {
	r := s.leftMessage()
	switch {
	case r != nil && s.follow(r) == stops, r == nil && s.status(s.state.job) == gone && s.Post == "":
		x.run, x.messages = fails, map[bool]int{true: 1}[r == nil]
		return
	case r == nil && s.refusal() != 0:
		x.run, x.messages = fails, 1
		switch earlier := s.state.refused; {
		case ended(s.status(s.state.job)):
			s.state.refused = s.prompt()
			s.state.closes = s.refusal() == 409 || earlier != "" && earlier != s.prompt()
		case s.status(s.state.job) != gone:
			s.state.refused = ""
		}
		return
	case r == nil:
		x.messages = 1
		r = s.post(x, &request{job: s.state.job, message: true})
	}
	closed := s.closed()
	s.state.prompt, s.state.writeOnly, s.state.triggers = s.prompt(), s.WriteOnly, s.Triggers
	s.state.refused, s.state.closes = "", false
	s.shows(r)
	if s.state.unconfirmed = !r.known; !r.known {
		x.run = fails
		return
	}
	s.state.status = active
	s.wait(x, false)
	if closed {
		x.run = either // no guide says it
	}
}

// post sends a request, and returns it if the service may have accepted it.
func (s situation) post(x *expected, r *request) *request {
	r.prompt, r.triggers, r.turn = s.prompt(), s.Triggers, s.number
	outcome := posts[s.Post]
	r.known = outcome.answered
	if !r.known {
		x.run = fails
	}
	if !outcome.sent {
		return nil
	}
	if r.named = s.Named && !r.message; !r.known && !r.message {
		r.job = ""
	}
	r.superfluous = s.journal == off
	s.sent = append(s.sent, r)
	return r
}

// shows adds to the state what a later run need not take over.
func (s situation) shows(r *request) {
	now := s.state
	now.shows = slices.Clone(now.shows)
	for _, earlier := range s.sent {
		if earlier == r || earlier.job == now.job && (!earlier.message || earlier.turn < r.turn) {
			now.shows = append(now.shows, earlier)
		}
	}
}

func (s situation) wait(x *expected, creating bool) {
	now := s.state
	if s.NoWait {
		x.run = succeeds
		return
	}
	end := now.status
	if now.job != fresh {
		end = s.status(now.job)
	}
	if x.messages > 0 {
		end = active
	}
	if !ended(end) && end != gone && s.Goes != outlasts {
		end = s.Goes
		if end == "" {
			end = completed
		}
	}
	for _, row := range waits {
		if row.applies(s, end, creating) {
			x.run, now.tainted = row.run, row.isTainted
			s.rows[row.when]++
			break
		}
	}
	if ended(end) {
		now.status = end
	}
}
