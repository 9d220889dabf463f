// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !race

package lives

import "slices"

// model is what a user knows who has read the guides.
type model struct {
	journal  string
	refusing int            // messages to completed jobs, with this status
	rows     map[string]int // of the tables, how often each applied
	state    *state         // as stored
	records  map[string]*record
	stopped  int      // the request that the last run stopped for
	history  []*state // before each turn
}

// state is what the state shows of a job.
type state struct {
	name, job, status string
	prompt            string // the last one that is recorded; empty: the job was imported
	triggers          bool
	tainted           bool
	unconfirmed       bool   // a message may not have arrived
	refused           string // the last prompt that it refused when it had finished
	closes            bool   // it refuses messages
	writeOnly         bool   // the prompt is
	adoption          int    // the turn in which this object adopted the job
	missing           bool   // the last refresh did not find the job
}

// record is what the journal has of a name.
type record struct {
	job      string // empty: unknown
	triggers bool
	last     *request // nil: the name has had no job
	released bool
	refuses  bool // messages
	broken   bool // the create failed although it had the job
	adoption int  // the turn in which the job was adopted; a killed run's is in no state
}

// request is one that the service has accepted, or may have accepted.
type request struct {
	turn             int
	message, unknown bool
	prompt           string
	pending          bool // its run was killed before a response arrived
}

func (r record) isFree() bool { return r.released || r.last == nil }

func (r record) isUnknownCreate() bool { return !r.isFree() && r.last.unknown && !r.last.message }

// want is what the plan of a turn asks for.
type want int

const (
	nothing want = iota
	newJob
	message
	assign   // the prompt or the name of an imported job
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
	killed            bool
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
	{"failed create, or a taint", func(s situation) bool { return s.state.tainted }, newJob},
	{"-replace", func(s situation) bool { return s.Does == replace }, newJob},
	{"triggers", func(s situation) bool {
		return (s.state.prompt != "" || s.state.name != noName) && s.Triggers != s.state.triggers
	}, newJob},
	{"another name", func(s situation) bool { return s.state.name != noName && s.state.name != s.Name }, newJob},
	{"given up", func(s situation) bool {
		r := s.record(s.state.name)
		return r.last != nil && !r.isUnknownCreate() && r.job == s.state.job && s.isForgotten(r)
	}, newJob},
	{`failed job, on_failure = "retry"`, func(s situation) bool { return s.state.status == failed && s.OnFailure == "retry" }, newJob},
	{"import", func(s situation) bool { return s.state.prompt == "" && !s.Ignored }, assign},
	{"prompt in ignore_changes", func(s situation) bool { return s.Ignored && s.state.name == s.Name }, nothing},
	{"import, prompt in ignore_changes", func(s situation) bool { return s.Ignored }, assign},
	{"unknown prompt, closed job", func(s situation) bool { return s.Unknown && !s.WriteOnly && s.closed() }, newJob},
	{"same prompt", func(s situation) bool { return s.state.prompt == s.prompt() }, nothing},
	{"unknown prompt_wo, closed job", func(s situation) bool { return s.Unknown && s.closed() && !s.wasSent() }, rejected},
	{"message of an earlier run", situation.wasSent, message},
	{"new prompt, after a refused message", func(s situation) bool { return s.state.closes }, newJob},
	{"new prompt, closed job", func(s situation) bool { return s.closed() }, newJob},
	{"new prompt", func(situation) bool { return true }, message},
}

// posts is the table "Sending" of reliability.md.
var posts = map[string]struct{ sent, answered, killed bool }{
	"":         {sent: true, answered: true},
	refused:    {},
	invalid:    {},
	lost:       {sent: true},
	notArrived: {sent: true}, // as far as anybody knows
	cut:        {sent: true, killed: true},
	unsent:     {killed: true},
}

// row is one of the tables of reliability.md that say what a request does because of the record of its name. The first
// one that applies counts.
type row struct {
	record string
	when   func(s situation, r *record) bool
	then   then
}

// then is what an apply does.
type then int

const (
	stops then = iota
	sends
	adopts
	countsAsSent
	continues // a message to the job
)

var creates = []row{
	{"create: none", func(_ situation, r *record) bool { return r.last == nil }, sends},
	{"create: given up", func(s situation, r *record) bool { return s.isForgotten(r) }, sends},
	{"create: released", func(_ situation, r *record) bool { return r.released }, sends},
	{"create: pending create of a killed run", func(_ situation, r *record) bool { return r.isUnknownCreate() && r.last.pending }, stops},
	{"create: unknown create", func(_ situation, r *record) bool { return r.isUnknownCreate() }, stops},
	{"create: other triggers", func(s situation, r *record) bool { return r.triggers != s.Triggers }, sends},
	{"create: another prompt, refused messages", func(s situation, r *record) bool { return r.last.prompt != s.prompt() && r.refuses }, sends},
	{"create: 404", func(s situation, r *record) bool { return s.status(r.job) == gone }, stops},
	{"create: another prompt, closed job", func(s situation, r *record) bool {
		return r.last.prompt != s.prompt() && (s.status(r.job) == failed || s.status(r.job) == archived)
	}, sends},
	{"create: another prompt, create cut short", func(s situation, r *record) bool { return r.last.prompt != s.prompt() && r.broken }, continues},
	{"create: another prompt", func(s situation, r *record) bool { return r.last.prompt != s.prompt() }, stops},
	{"create: failed job, to be retried", func(s situation, r *record) bool { return s.status(r.job) == failed && s.OnFailure == "retry" }, sends},
	{"create: failed job", func(s situation, r *record) bool { return s.status(r.job) == failed }, adopts},
	{"create: same prompt", func(situation, *record) bool { return true }, adopts},
}

var messages = []row{
	{"message: none, or released by another job", func(s situation, r *record) bool {
		return r.last == nil || r.released && r.job != s.state.job
	}, sends},
	{"message: another job, given up", func(s situation, r *record) bool { return r.job != s.state.job && s.isForgotten(r) }, sends},
	{"message: another job, or an unknown create", func(s situation, r *record) bool { return r.job != s.state.job }, stops},
	{"message: another prompt", func(s situation, r *record) bool { return r.last.prompt != s.prompt() }, sends},
	{"message: unknown", func(_ situation, r *record) bool { return r.last.unknown }, countsAsSent},
	{"message: accepted", func(situation, *record) bool { return true }, adopts},
}

// follow is what the record of the name says. A run that stops names the request that is in the way.
func (s situation) follow(table []row, r *record) then {
	row := table[slices.IndexFunc(table, func(row row) bool { return row.when(s, r) })]
	s.rows[row.record]++
	if row.then == stops {
		s.stopped = r.last.turn
	}
	return row.then
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
	{"stopped early, created by this run", func(_ situation, _ string, creating bool) bool { return creating }, fails, true},
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
		return s.refusing
	}
	return refusals[s.Post]
}

func ended(status string) bool { return status == completed || status == failed || status == archived }

// record is that of the name.
func (m *model) record(name string) *record {
	if m.records[name] == nil || m.journal == off {
		m.records[name] = new(record)
	}
	return m.records[name]
}

// isForgotten reports whether the turn gives up the last request of a name.
func (s situation) isForgotten(r *record) bool { return s.Forgets && r.last.turn == s.stopped }

// wasSent reports whether an earlier run has sent the prompt to the job.
func (s situation) wasSent() bool {
	r := s.record(s.Name)
	return r.last != nil && r.job == s.state.job && r.last.prompt == s.prompt()
}

// play says what the guides promise of a turn, and changes the model accordingly. A new
// job is called "new".
func (m *model) play(t turn, number int, status func(string) string) expected {
	s := situation{t, m, number, status}
	x := expected{run: succeeds}
	m.history = append(m.history, m.state)
	if m.state != nil && t.Does == taint {
		tainted := *m.state
		tainted.tainted = true
		m.state = &tainted
	}
	before := m.state
	if m.state != nil && !t.changesState() {
		s.refresh(&x)
	}
	switch t.Does {
	case refresh:
	case destroy:
		if !t.Unapplied {
			s.delete()
		}
	case stateRm:
		m.state = nil
	case restore:
		m.state = m.history[max(0, number-2)]
	case importJob:
		m.state = &state{name: noName, job: imported, status: active}
	default:
		s.apply(&x)
	}
	if x.killed || t.Killed && !t.changesState() {
		m.state = before
	}
	return x
}

// The ids of jobs that the model cannot know yet.
const (
	fresh    = "new"
	imported = "imported"
	noName   = "none" // of an imported job
)

func (s situation) refresh(x *expected) {
	now := *s.state
	s.state = &now
	x.warns = s.status(now.job) == gone
	now.missing = x.warns
	if status := s.status(now.job); status != gone {
		now.unconfirmed = now.unconfirmed && (!ended(now.status) || ended(status))
		if !ended(status) {
			now.refused, now.closes = "", false
		}
		now.status = status
	}
}

// delete is a Delete. It frees the name of the job, unless that is only tainted and may be what the create wants. left: the create finds
// the job in the memory of the process.
func (s situation) delete() (left *state) {
	was := s.state
	if s.state = nil; was == nil {
		return nil
	}
	isTainted := was.tainted && s.Does != destroy // the private state is that of the successor
	r := s.record(was.name)
	if isTainted && was.name == s.Name && s.mayKeep() {
		return was
	}
	if r.job == was.job && r.last != nil && !r.isUnknownCreate() && (isTainted || r.adoption == was.adoption) {
		r.released = true
	}
	return nil
}

// mayKeep reports whether the name has a job that a create may adopt, or send the prompt to, as far as a plan knows.
func (s situation) mayKeep() bool {
	r := s.record(s.Name)
	switch {
	case r.last == nil:
		return true
	case s.isForgotten(r), r.released, r.isUnknownCreate(), r.triggers != s.Triggers:
		return false
	}
	return s.Unknown || r.last.prompt == s.prompt() || r.broken && !r.refuses
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
	x.warns = x.warns || (x.want == nothing || x.want == assign) && s.failsLater()
	x.names = s.named(x)
	x.warns = x.warns || len(x.names) > 0
	if s.Unapplied {
		return
	}
	switch x.want {
	case newJob:
		s.create(x, s.delete())
	case message:
		s.message(x)
	case rejected:
		x.run = fails
	case assign, nothing:
		s.keep(x)
	}
}

// failsLater reports whether an apply fails because the job in the state has failed.
func (s situation) failsLater() bool {
	return s.state.status == failed && s.OnFailure == "" && !s.NoWait
}

// named are the jobs that the plan must name, because they will stop the apply, or because it starts a job beside them.
func (s situation) named(x *expected) []string {
	r := s.record(s.Name)
	isOwn := s.state != nil && !s.state.tainted && r.job == s.state.job
	switch {
	case r.isFree(), s.isForgotten(r), r.job == "", isOwn, s.Unknown:
	case x.want == message && r.job != s.state.job:
		return []string{r.job}
	case s.Does == replace: // Terraform drops the warnings of the call that knows
	case x.want == newJob && !r.isUnknownCreate() && (r.triggers != s.Triggers || r.last.prompt != s.prompt() && !r.refuses) && !r.broken:
		return []string{r.job}
	}
	return nil
}

// keep sends nothing.
func (s situation) keep(x *expected) {
	if x.want == assign {
		prompt := s.prompt()
		if s.Ignored {
			prompt = map[bool]string{false: s.state.prompt}[s.state.writeOnly]
		}
		s.accept(&request{turn: s.number, message: true, prompt: prompt}, s.state.job)
		r := s.record(s.Name)
		r.triggers = s.Triggers
		s.state.name, s.state.adoption = s.Name, r.adoption
	}
	if !s.Ignored {
		s.state.prompt, s.state.writeOnly = s.prompt(), s.WriteOnly
	}
	s.state.triggers = s.Triggers
	switch {
	case !ended(s.state.status):
		s.wait(x, false)
	case s.failsLater():
		x.run = fails
		s.names(s.record(s.Name))
	}
}

// names is an error that names the last request for the job in the state.
func (s situation) names(r *record) {
	if r.last != nil && r.job == s.state.job {
		s.stopped = r.last.turn
	}
}

func (s situation) create(x *expected, left *state) {
	r := s.record(s.Name)
	s.state = nil
	s.reach(x)
	if x.killed {
		return
	}
	if left != nil && r.isFree() && left.prompt == s.prompt() && left.triggers == s.Triggers {
		*r = record{job: left.job, triggers: left.triggers, last: &request{turn: s.number, prompt: left.prompt}, broken: true}
	}
	switch s.follow(creates, r) {
	case stops:
		x.run = fails
		if left != nil && left.prompt == s.prompt() && left.triggers == s.Triggers {
			s.started(left.job, active)
			s.state.tainted = true
		}
	case adopts:
		s.started(r.job, s.status(r.job))
		s.state.unconfirmed = r.last.unknown
		r.adoption, s.state.adoption, r.broken = s.number, s.number, false
		s.wait(x, true)
	case continues:
		x.messages = 1
		if s.status(r.job) == completed && s.Post == "" && s.refusing != 0 || refusals[s.Post] != 0 {
			x.run = fails
			r.refuses = r.refuses || ended(s.status(r.job))
			return
		}
		switch sent := s.post(x, r.job); {
		case sent == nil:
		case sent.unknown:
			s.started(r.job, active)
			s.state.tainted, s.state.unconfirmed, s.state.adoption, r.broken = true, true, r.adoption, !x.killed
		default:
			s.started(r.job, active)
			s.state.adoption = r.adoption
			s.wait(x, true)
		}
	default:
		x.creates = 1
		if sent := s.post(x, fresh); sent != nil && !sent.unknown {
			s.started(fresh, active)
			s.wait(x, true)
		}
	}
}

func (s *situation) started(job, status string) {
	s.state = &state{name: s.Name, job: job, status: status, prompt: s.prompt(), writeOnly: s.WriteOnly, triggers: s.Triggers}
}

func (s situation) message(x *expected) {
	r, isUnknown := s.record(s.Name), false
	switch then := s.follow(messages, r); {
	case then == stops:
		x.run = fails
		return
	case then == countsAsSent:
		isUnknown = true
	case then == adopts && s.status(s.state.job) == gone, then == sends && s.status(s.state.job) == gone && s.Post == "":
		x.run, x.messages = fails, map[bool]int{true: 1}[then == sends]
		if then == adopts { // the error names the request
			s.stopped = r.last.turn
		}
		return
	case then == adopts:
		s.reach(x)
	case s.refusal() != 0:
		x.run, x.messages = fails, 1
		s.refuse()
		return
	default:
		x.messages = 1
		sent := s.post(x, s.state.job)
		if sent == nil {
			return
		}
		isUnknown = sent.unknown
	}
	closed := s.closed()
	s.state.prompt, s.state.writeOnly, s.state.triggers = s.prompt(), s.WriteOnly, s.Triggers
	s.state.refused, s.state.closes = "", false
	s.state.adoption = r.adoption
	if s.state.unconfirmed = isUnknown; isUnknown {
		x.run = fails
		return
	}
	s.state.status = active
	s.wait(x, false)
	if closed {
		x.run = either // no guide says it
	}
}

// refuse is what a refused message leaves.
func (s situation) refuse() {
	switch earlier := s.state.refused; {
	case ended(s.status(s.state.job)):
		s.state.refused = s.prompt()
		s.state.closes = s.refusal() == 409 || earlier != "" && earlier != s.prompt()
		if r := s.record(s.Name); s.state.closes && r.job == s.state.job {
			r.refuses = true
		}
	case s.status(s.state.job) != gone:
		s.state.refused = ""
	}
}

// post sends a request to a job, and returns it if the service may have accepted it.
func (s situation) post(x *expected, job string) *request {
	outcome := posts[s.Post]
	r := &request{turn: s.number, message: job != fresh, unknown: !outcome.answered, prompt: s.prompt(), pending: outcome.killed}
	s.rows["POST: "+s.Post]++
	if x.killed = outcome.killed; !outcome.answered {
		x.run = fails
	}
	switch {
	case !outcome.sent:
		if outcome.killed {
			x.creates, x.messages = 0, 0
		}
		return nil
	case r.unknown && !r.message:
		job = ""
		if !outcome.killed {
			s.stopped = s.number
		}
	}
	s.accept(r, job)
	return r
}

// reach reads a job, unless the run is killed before that.
func (s situation) reach(x *expected) { x.killed = x.killed || s.Post == unsent }

// accept records the last request of the name.
func (s situation) accept(last *request, job string) {
	r := s.record(s.Name)
	if r.job != job || r.isUnknownCreate() {
		r.triggers = s.Triggers
	}
	if r.job != job {
		r.adoption = 0
	}
	r.last, r.job, r.released, r.refuses, r.broken = last, job, false, false, false
}

func (s situation) wait(x *expected, creating bool) {
	now := s.state
	if s.NoWait {
		x.run = succeeds
		return
	}
	s.reach(x)
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
			r := s.record(s.Name)
			r.broken = r.broken || creating && row.isTainted
			if row.run == fails && !x.killed && (end != failed || s.OnFailure != "retry") {
				s.names(r)
			}
			s.rows[row.when]++
			break
		}
	}
	if ended(end) {
		now.status = end
	}
}
