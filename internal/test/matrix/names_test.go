// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// triggered is a job with a trigger.
func triggered(job attrs, value string) attrs {
	return fakecli.With(job, attrs{"triggers": attrs{"a": value}})
}

// inFlight applies a job whose POST gets no response before release is called, and starts the next run. The earlier one counts as
// killed if hasEnded: then nothing that it learns later is written.
func (m *Matrix) inFlight(job attrs, kind faultserver.Kind, hasEnded bool) (release func()) {
	m.Helper()
	responds, ended := make(chan struct{}), sync.WaitGroup{}
	m.Always(kind, func(x *faultserver.Exchange) { <-responds; faultserver.Healthy(x) })
	earlier := *m.cli
	earlier.Load(m.ctx, earlier.Instance)
	earlier.Plan(m.ctx, job)
	ended.Go(func() { earlier.Apply(m.ctx, job) })
	time.Sleep(time.Second)
	m.Always(kind, nil)
	m.nextRun()
	if hasEnded {
		m.process.Ended = func(sender cli.Sender) bool { return sender != m.process.Self }
	}
	return func() { close(responds); ended.Wait() }
}

// write writes a record over the one that is there.
func (m *Matrix) write(r *journal.Record) {
	m.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		m.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(r.Where, "*.json"))
	if err != nil || len(files) != 1 {
		m.Fatal(files, err)
	}
	number, err := strconv.Atoi(filepath.Base(files[0])[:len(filepath.Base(files[0]))-len(".json")])
	if err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.Where, strconv.Itoa(number+1)+".json"), text, 0o600); err != nil {
		m.Fatal(err)
	}
}

// nameRows are what a create does because of the record of its name: each row of the table in internal/README.md.
func nameRows() (rows []Row) {
	row := func(name string, test func(m *Matrix)) {
		rows = append(rows, Row{name: name, clock: true, Test: func(m *Matrix) {
			m.nextRun()
			test(m)
		}})
	}
	// Red without: Accepted; Released in IsFree; Release in Destroyed.
	row("N01_no_record_or_a_released_one", func(m *Matrix) {
		for n := range 2 {
			id := m.created(Job1())
			m.wantRecord(id, false, false)
			m.nextRun()
			m.OK(m.note(m.cli.Destroy(m.ctx)))
			m.wantRecord(id, false, true)
			m.nextRun()
			m.WantPosts(n+1, 0)
		}
	})
	// Red without: Adopt in judgeCreate; has, and the hash of triggers.
	row("N02_the_same_request", func(m *Matrix) {
		job := triggered(Job1(), "1")
		id := m.created(job)
		for range 2 {
			m.cli.Forget()
			m.nextRun()
			m.adopts(job, id)
			m.wantRecord(id, false, false)
		}
		m.nextRun()
		m.OK(m.Run(job))
		m.WantPosts(1, 0)
	})
	for _, status := range []string{"failed", "archived", "active"} {
		// Red without: the status having no say in judgeCreate.
		row("N02_the_job_is_"+status, func(m *Matrix) {
			id := m.started(noWait())
			m.Sim.SetStatus(id, status)
			m.adopts(noWait(), id)
			m.wantAttr("status", status)
		})
	}
	// The job of a lost state has had more than one prompt. Red without: the last message's hash in Last.
	row("N02_after_messages", func(m *Matrix) {
		id := m.created(Job1())
		m.nextRun()
		m.wantDiags(m.Run(Job2()), messagePlanned)
		m.cli.Forget()
		m.nextRun()
		m.wantDiags(m.Run(Job1()), otherPlanned, otherPrompt)
		m.cli.Forget()
		m.nextRun()
		m.adopts(Job2(), id)
		m.WantPosts(1, 1)
	})
	// Red without: OtherPrompt in judgeCreate; otherPromptWays.
	row("N03_another_prompt", func(m *Matrix) {
		id := m.started(Job1())
		for range 2 {
			m.wantDiags(m.Run(Job2()), otherPlanned, otherPrompt)
			m.wantWords("job "+id, "with another prompt", "restore its prompt and apply: that adopts it", "import ADDRESS proj_1/"+id,
				"AGENT_JOURNAL_FORGET="+m.record().Last.ID)
			m.wantEnd("", 1, 0)
			m.nextRun()
		}
		m.adopts(Job1(), id)
	})
	// Red without: the same, and a new job only for the id of the last request.
	row("N03_another_prompt_given_up", func(m *Matrix) {
		id := m.started(Job1())
		m.forget(m.record().Last.ID)
		m.nextRun()
		m.starts(Job2())
		if m.id() == id {
			m.Error("it has the earlier job")
		}
		m.cli.Forget()
		m.nextRun() // the id is used up
		m.wantDiags(m.Run(Job1()), otherPlanned, otherPrompt)
		m.WantPosts(2, 0)
	})
	// Red without: Assign of an import.
	row("N03_another_prompt_imported", func(m *Matrix) {
		id := m.started(Job1())
		m.OK(m.imports(harness.Project + "/" + id))
		m.wantDiags(m.Run(Job2()), promptRecorded)
		m.wantRecord(id, false, false)
		m.cli.Forget()
		m.nextRun()
		m.adopts(Job2(), id)
	})
	// Red without: Beside in judgeCreate; LeftBehind; leave.
	row("N04_other_triggers", func(m *Matrix) {
		id := m.started(triggered(Job1(), "1"))
		m.starts(triggered(Job1(), "2"), otherJob)
		m.wantWords("job "+id, "with other triggers")
		if r := m.record(); len(r.Previous) != 1 || r.Previous[0].Job != id {
			m.Errorf("record: %+v", r)
		}
		m.nextRun()
		m.wantDiags(m.Run(triggered(Job1(), "2")), previousJobs)
		m.nextRun()
		m.OK(m.Run(triggered(Job1(), "2")))
	})
	// Red without: isInState in leave.
	row("N04_other_triggers_of_a_job_in_the_state", func(m *Matrix) {
		m.created(triggered(Job1(), "1"))
		m.nextRun()
		m.starts(triggered(Job1(), "2"))
		m.nextRun()
		m.OK(m.Run(triggered(Job1(), "2")))
	})
	// Red without: Unreadable for a 404 in adopt; IsForgotten in it. A wrong key has the same effect.
	row("N05_the_job_is_not_found", func(m *Matrix) {
		id := m.started(noWait())
		m.Sim.Forget(id)
		for range 2 {
			m.wantDiags(m.plan(Job1()), adoptPlanned)
			time.Sleep(time.Hour)
			m.wantDiags(m.apply(Job1()), unreadable)
			m.wantWords(id, "the job cannot be read now. The prompt was not sent again.", "404 Not Found", "Apply again once the service responds.",
				"If the job no longer exists, give it up: set journal { forget")
			m.wantEnd("", 1, 0)
			m.nextRun()
		}
		m.forget(m.record().Last.ID)
		m.nextRun()
		m.wantDiags(m.plan(Job1()), adoptPlanned)
		m.OK(m.apply(Job1()))
		m.wantEnd("completed", 2, 0)
	})
	// Red without: Wait in judge.
	row("N06_waits_for_the_response", func(m *Matrix) {
		release := m.inFlight(noWait(), faultserver.Create, false)
		time.AfterFunc(5*time.Second, release)
		start := time.Now()
		m.wantDiags(m.Run(noWait()), requestPlanned, adopted)
		m.wantTook(start, 5*time.Second, 6*time.Second)
		m.WantPosts(1, 0)
	})
	// Red without: the deadline in isOver.
	row("N06_waits_until_no_response_can_arrive", func(m *Matrix) {
		release := m.inFlight(noWait(), faultserver.Create, false)
		r := m.record()
		r.Write = "another" // so that it cannot record the outcome
		m.write(r)
		start := time.Now()
		m.wantDiags(m.Run(noWait()), requestPlanned, outcomeUnknown)
		m.wantTook(start, 100*time.Second, 2*time.Minute)
		release()
		m.wantEnd("", 1, 0)
	})
	// The other runner's clock is an hour ahead. Red without: the end of the wait in Look.
	row("X15_the_clock_of_the_other_run_is_ahead", func(m *Matrix) {
		release := m.inFlight(noWait(), faultserver.Create, false)
		r := m.record()
		r.Write = "another"
		r.Claim.SentAt, r.Claim.Deadline = r.Claim.SentAt.Add(time.Hour), r.Claim.Deadline.Add(time.Hour)
		m.write(r)
		start := time.Now()
		m.wantDiags(m.Run(noWait()), requestPlanned, outcomeUnknown)
		m.wantTook(start, 100*time.Second, 150*time.Second)
		release()
		m.wantEnd("", 1, 0)
	})
	// Red without: Ended in isOver.
	row("N06_the_process_has_ended", func(m *Matrix) {
		release := m.inFlight(noWait(), faultserver.Create, true)
		start := time.Now()
		m.wantDiags(m.Run(noWait()), unknownPlanned, outcomeUnknown)
		m.wantTook(start, 0, time.Second)
		m.wantEnd("", 1, 0)
		release()
	})
	// A run that was killed between its claim and the first byte. Red without: Unsent in settle.
	row("N06_the_process_has_ended_before_it_sent", func(m *Matrix) {
		release := m.inFlight(noWait(), faultserver.Create, true)
		r := m.record()
		r.Claim.Unsent = true
		m.write(r)
		m.Script(faultserver.Create, faultserver.Healthy)
		m.OK(m.Run(noWait()))
		m.wantRecord(m.id(), false, false)
		id := m.id()
		release() // what is over does not write
		m.wantRecord(id, false, false)
	})
	// Red without: Unknown before the triggers in judgeCreate.
	row("N07_an_unknown_create", func(m *Matrix) {
		m.lostResponse(Job1())
		for _, job := range []attrs{Job1(), Job2(), triggered(Job1(), "2")} {
			m.wantDiags(m.Run(job), unknownPlanned, outcomeUnknown)
			m.wantEnd("", 1, 0)
			m.nextRun()
		}
	})
	// Red without: Renamed; warnOfOthers.
	row("N08_another_name", func(m *Matrix) {
		id := m.started(Job1())
		m.cli.Name = "b"
		m.wantDiags(m.plan(Job1()), "WARNING: Equal agent job under another name")
		m.wantWords("job "+id, `under the name "a"`, "set the earlier name and apply")
		m.OK(m.apply(Job1()))
		m.WantPosts(2, 0)
	})
	// Red without: IsForgotten in Renamed.
	row("N08_another_name_given_up", func(m *Matrix) {
		m.started(Job1())
		m.cli.Name = "b"
		m.forget(m.record().Last.ID)
		m.nextRun()
		m.starts(Job1())
	})
	// Red without: hold; InState in judgeCreate.
	row("N09_two_resources_in_a_plan", func(m *Matrix) {
		second := m.same()
		m.OK(m.plan(Job1()))
		m.wantDiags(m.note(second.Plan(m.ctx, Job2())), duplicateName)
		m.wantWords(`with the name "a"`, "Set a different name for each")
	})
	row("N09_a_second_resource_with_the_name_of_a_job_in_the_state", func(m *Matrix) {
		m.created(Job1())
		for _, isFirst := range []bool{true, false} {
			m.nextRun()
			second := m.same()
			if isFirst {
				m.note(second.Plan(m.ctx, Job1()))
				m.wantDiags(m.plan(Job1()), duplicateName)
			} else {
				m.OK(m.plan(Job1()))
				m.wantDiags(m.note(second.Plan(m.ctx, Job1())), duplicateName)
			}
		}
		m.WantPosts(1, 0)
	})
	// What no plan knows: the name is known in the apply only. Red without: Run in judgeCreate; the sender of a claim in judge.
	row("N09_two_resources_in_an_apply", func(m *Matrix) {
		second := m.same()
		m.OK(m.plan(fakecli.With(Job1(), attrs{"name": unknown{}})))
		m.OK(m.note(second.Plan(m.ctx, fakecli.With(Job1(), attrs{"name": unknown{}}))))
		m.OK(m.apply(Job1()))
		m.wantDiags(m.note(second.Apply(m.ctx, Job1())), duplicateName)
		m.WantPosts(1, 0)
	})
	// Two aliases are two processes of a run. Red without: Run in judgeCreate; Adopt writing the run.
	row("N09_two_aliases", func(m *Matrix) {
		second := m.same()
		id := m.created(Job1())
		alias := func() {
			m.cli, second = second, m.cli
			m.sameRun()
			m.note(m.cli.Plan(m.ctx, Job1()))
			m.wantDiags(m.note(m.cli.Apply(m.ctx, Job1())), duplicateName)
			m.cli, second = second, m.cli
		}
		alias()
		m.cli.Forget()
		m.nextRun()
		m.adopts(Job1(), id)
		alias()
		m.WantPosts(1, 0)
	})
	// A resource that the run has just destroyed keeps no name. Red without: the delete from inState in Destroyed.
	row("N09_the_other_resource_is_destroyed", func(m *Matrix) {
		id := m.created(Job1())
		m.nextRun()
		other := m.same()
		m.OK(m.note(m.cli.PlanDestroy(m.ctx)))
		m.wantDiags(m.note(other.Plan(m.ctx, Job1())), notAdopted)
		m.wantWords(id, "add a moved block")
		m.nextRun()
		other.Server = m.cli.Server
		m.OK(m.note(m.cli.Delete(m.ctx, m.cli.PlannedPrivate)))
		m.OK(m.note(other.Apply(m.ctx, Job1())))
		m.WantPosts(2, 0)
	})
	return rows
}

// nextPlan plans in the next run.
func (m *Matrix) nextPlan(job attrs) (diags diagnostics) {
	m.Helper()
	m.nextRun()
	return append(m.refresh(), m.plan(job)...)
}

// messageNameRows are what a message does because of the record of its name.
func messageNameRows() (rows []Row) {
	row := func(name string, test func(m *Matrix, id string)) {
		rows = append(rows, Row{name: name, clock: true, Test: func(m *Matrix) {
			m.nextRun()
			id := m.created(Job1())
			m.nextRun()
			test(m, id)
		}})
	}
	// Red without: Send for a free record in judgeMessage.
	rows = append(rows, Row{name: "N11_no_record", clock: true, Test: func(m *Matrix) {
		m.nextRun()
		id := m.Sim.Create(harness.Project, "manual").ID
		time.Sleep(time.Minute)
		m.OK(m.imports(harness.Project + "/" + id))
		m.wantDiags(m.Run(Job1()), promptRecorded)
		m.wantRecord(id, false, false)
		m.nextRun()
		m.wantDiags(m.Run(Job2()), messagePlanned)
		m.wantRecord(id, false, false)
		m.cli.Forget()
		m.nextRun()
		m.adopts(Job2(), id)
		m.WantPosts(0, 1)
	}})
	// Red without: Adopt in judgeMessage; the claim of messages.
	row("N12_the_message_was_accepted", func(m *Matrix, id string) {
		m.undone(func() { m.wantDiags(m.Run(Job2()), messagePlanned) })
		m.nextRun()
		m.wantDiags(m.Run(Job2()), messageFound, messageFound)
		m.wantWords("sent this prompt to job "+id, "Apply sends nothing", "It was not sent again", "change it (any visible change will do)")
		m.wantEnd("completed", 1, 1)
	})
	// Red without: SentUnknown.
	row("N12_the_outcome_of_the_message_is_unknown", func(m *Matrix, id string) {
		m.Script(faultserver.Message, func(x *faultserver.Exchange) { m.cli.Stop(); faultserver.EOF(x) })
		m.undone(func() { m.wantDiags(m.Run(Job2()), messagePlanned, MessageUnknown) })
		m.wantRecord(id, true, false)
		m.nextRun()
		m.wantDiags(m.Run(Job2()), requestPlanned, MessageUnknown)
		m.wantWords("job "+id, "and nothing shows whether it arrived.")
		m.wantDiags(m.Run(Job2()), messageUnconfirmed)
		m.WantPosts(1, 1)
	})
	// A lost state, too. Red without: LastMessage in Create.
	row("N12_the_outcome_is_unknown_and_the_state_lost", func(m *Matrix, id string) {
		m.Script(faultserver.Message, faultserver.EOF)
		m.wantDiags(m.Run(Job2()), messagePlanned, MessageUnknown)
		m.cli.Forget()
		m.nextRun()
		m.adopts(Job2(), id)
		m.wantDiags(m.nextPlan(Job2()), messageUnconfirmed)
		m.WantPosts(1, 1)
	})
	// Red without: Wait in judge.
	row("N13_waits_for_the_response", func(m *Matrix, _ string) {
		release := m.inFlight(Job2(), faultserver.Message, false)
		time.AfterFunc(5*time.Second, release)
		m.wantDiags(m.Run(Job2()), requestPlanned, messageFound)
		m.wantEnd("completed", 1, 1)
	})
	// Red without: Unsent in settle.
	row("N13_the_process_has_ended_before_it_sent", func(m *Matrix, id string) {
		release := m.inFlight(Job2(), faultserver.Message, true)
		r := m.record()
		r.Claim.Unsent = true
		m.write(r)
		m.wantDiags(m.Run(Job2()), messagePlanned)
		release()
		m.wantRecord(id, false, false)
	})
	// Only the last prompt counts. Red without: has in judgeMessage.
	row("N14_prompts_A_C_B_C", func(m *Matrix, id string) {
		job3 := attrs{"prompt": "Add a tutorial, please"}
		m.undone(func() { m.wantDiags(m.Run(job3), messagePlanned) })
		m.nextRun()
		m.undone(func() { m.wantDiags(m.Run(Job2()), messagePlanned) })
		m.nextRun()
		m.wantDiags(m.Run(job3), messagePlanned)
		m.wantEnd("completed", 1, 3)
		m.wantRecord(id, false, false)
	})
	// Red without: the same, for a message with unknown outcome.
	row("N14_an_unknown_message_with_another_prompt", func(m *Matrix, id string) {
		m.Script(faultserver.Message, faultserver.EOF)
		m.undone(func() { m.wantDiags(m.Run(Job2()), messagePlanned, MessageUnknown) })
		m.nextRun()
		m.wantDiags(m.Run(attrs{"prompt": "Add a tutorial, please"}), messagePlanned)
		m.wantRecord(id, false, false)
		m.WantPosts(1, 2)
	})
	// The state before a replacement comes back. Red without: OtherJob in judgeMessage; otherJobWays; OtherJob of the wording in planKept.
	row("N15_another_job", func(m *Matrix, id string) {
		m.undone(func() { m.starts(triggered(Job1(), "2")) })
		second := m.record().Job
		m.nextRun()
		m.wantDiags(m.Run(Job2()), otherJob, nameTakenPlanned, nameTaken)
		m.wantWords("job "+second, "not job "+id, "terraform (or tofu) state rm ADDRESS", "AGENT_JOURNAL_FORGET="+m.record().Last.ID)
		m.wantEnd("completed", 2, 0)
		m.forget(m.record().Last.ID)
		m.nextRun()
		m.wantDiags(m.Run(Job2()), messagePlanned)
		m.wantEnd("completed", 2, 1)
		m.wantRecord(id, false, false)
	})
	// Red without: Send for an unknown create in judgeMessage; leave; PreviousJobs.
	row("N16_an_unknown_create", func(m *Matrix, id string) {
		m.undone(func() {
			m.Script(faultserver.Create, faultserver.Effect(faultserver.Reset))
			m.wantDiags(m.Run(triggered(Job1(), "2")), outcomeUnknown)
		})
		request := m.record().Last.ID
		m.nextRun()
		m.wantDiags(m.Run(Job2()), otherJob, messagePlanned)
		m.wantEnd("completed", 2, 1)
		m.wantRecord(id, false, false)
		m.wantDiags(m.nextPlan(Job2()), previousJobs)
		m.wantWords("a create with an unknown outcome, which you can give up: ", request)
	})
	// Red without: planKept.
	row("N21_a_plan_that_keeps_another_job", func(m *Matrix, id string) {
		m.undone(func() { m.starts(triggered(Job1(), "2")) })
		second := m.record().Job
		m.nextRun()
		m.wantDiags(m.Run(Job1()), otherJob)
		m.wantWords("started job "+second, "the state has job "+id, "Unless job "+id+" is replaced, apply keeps it")
		m.cli.Forget() // as the message says
		m.nextRun()
		m.adopts(triggered(Job1(), "2"), second)
		m.nextRun()
		m.OK(m.Run(triggered(Job1(), "2")))
	})
	// Red without: IsUnknownCreate in OtherJob of the wording.
	row("N21_a_plan_that_keeps_a_job_beside_an_unknown_create", func(m *Matrix, id string) {
		m.undone(func() {
			m.Script(faultserver.Create, faultserver.Effect(faultserver.Reset))
			m.wantDiags(m.Run(triggered(Job1(), "2")), outcomeUnknown)
		})
		m.nextRun()
		m.wantDiags(m.Run(Job1()), otherJob)
		m.wantWords("may have started a job, with unknown outcome,", "the state has job "+id)
		m.forget(m.record().Last.ID)
		m.nextRun()
		m.OK(m.Run(Job1()))
		m.WantPosts(2, 0)
	})
	return rows
}
