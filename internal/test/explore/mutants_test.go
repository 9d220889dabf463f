// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !race && unix

package explore

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mutant reverts what keeps the promise. A schedule must show that it is needed.
type mutant struct {
	file, line, instead string
	finds               string // the scenario that shows it, or a life
}

// mutants are the rows of internal/PROMISE.md. Some rows
// are not here, because no cut of a run shows them: an HTTP library repeats a request when a
// connection breaks under it, a panic is no cut, the end of an earlier run of a job needs a
// service that shows an old record, a message that is forgotten too early one that refuses
// another, a laptop sleeps between a claim and its POST, and a folder's claim and what it says just before sending are one step.
// Their own tests show them.
func mutants() map[string]mutant {
	const create, message = "create", "message"
	return map[string]mutant{
		"an unknown outcome is not taken for a refusal": {
			"agentapi/classify.go", "	return nil, c.newError(call, ErrUnknownOutcome, got, err)\n}", "	return nil, c.newError(call, ErrRefused, got, err)\n}", create,
		},
		"the provider waits for the response": {"agentapi/exchange.go", "ctx, stop = d.detach(ctx)", "stop = func() {}", create},
		"the id is in the state before the wait": {
			"job/apply.go", "	c.save(ctx, c.job)\n	return warnings\n", "	if !c.isCreate {\n		c.save(ctx, c.job)\n	}\n	return warnings\n", create,
		},
		"a job that has not finished is red": {
			"job/await.go", "	addError(c.diags, text)\n", "	addWarning(c.diags, text)\n", "create times out",
		},
		"Ctrl-C does not taint": {"job/await.go", "errors.Is(err, context.Canceled)", "false", create},
		"an accepted message is in the state": {
			"job/apply.go", "	c.save(ctx, c.job)\n	return warnings\n", "	if c.isCreate {\n		c.save(ctx, c.job)\n	}\n	return warnings\n", message,
		},
		"a shutdown waits for responses":                 {"plugin/serve.go", "		drain(ctx, process, shutdownDrain)\n", "", create},
		"a plugin whose CLI is gone waits for responses": {"plugin/serve.go", "		drain(ctx, process, cliGoneDrain)\n", "", "late response"},

		"an unknown create stops":    {"send/judge.go", "	case record.IsUnknownCreate():\n		out.Result = EarlierUnknown\n", "", create},
		"the same request adopts":    {"send/judge.go", "		out.Result = Adopted\n", "		out.Result = MaySend\n", create},
		"a name has one running job": {"send/judge.go", "	case (isActive || mayStillRun) && hasArguments: ", "	case (isActive || mayStillRun) && false: ", "state lost, edited"},
		"a job whose message is new runs": {
			"send/judge.go", "err == nil && record.LastMessage() != nil && agentapi.MayBeStale(job.Status, record.Last.SentAt)\n", "false\n", "message, then the state lost, edited",
		},
		"a request given up sends":   {"send/judge.go", "	case record.Last == nil, isGivenUp, ", "	case record.Last == nil, ", "create, and a decision"},
		"a job given up is replaced": {"job/decide.go", "	case e.isGivenUp && e.isRead, isFailed", "	case isFailed", "forget"},
		"a finished job that refuses a message is replaced": {
			"job/apply.go", "	c.marks.message.RefusesMessages = true\n", "", "closed job",
		},
		"a message goes to the job that the name has": {
			"send/judge.go", "	case isOther && !isGivenUp:\n		return OtherJob\n", "", "older state, after -replace, edited",
		},
		"a message does not hide an unknown create": {
			"send/judge.go", "record.IsFreed() && isOther:", "record.IsFreed() && isOther, record.IsUnknownCreate():", "older state, after -replace, edited",
		},
		"a killed replacement does not hide a message": {
			"send/judge.go", "record.Last == nil, record.IsFreed() && isOther:", "record.IsFree():", "message, then -replace, remote state",
		},
		"a message of an earlier run counts as sent": {"send/judge.go", "	case record.Last.Unknown:\n		return EarlierUnknown\n	}\n	return AlreadySent\n", "	}\n	return MaySend\n", message},
		"a claim that is over may have been sent":    {"journal/journal.go", "		return r.withUnknown()\n", "		s := *r\n		s.Claim = nil\n		return &s\n", create},
		"a request waits for the claim of another run": {
			"journal/call.go", "	r, text, err := c.journal.awaitRecord(ctx, c.wanted.Project, c.wanted.Name)\n",
			"	r, text, err := c.journal.read(ctx, c.text.Key)\n	if r != nil && r.Claim != nil {\n		r = r.withUnknown()\n	}\n", "late response",
		},
		"a Delete waits for the claim of another run": {
			"journal/journal.go", "		r, text, err := j.awaitRecord(ctx, project, name)\n", "		r, text, err := j.read(ctx, key(project, name))\n		if r == nil {\n			r = &Record{Project: project, Name: name}\n		}\n", "message, then a destroy",
		},
		"a plan counts the claim of another run as sent": {"send/judge.go", " || r == EarlierUnknown || r == Waiting }", " || r == EarlierUnknown }", "message that fails"},

		"no POST without a claim":                                    {"journal/call.go", "		c.taken++\n	}\n	return err\n", "		c.taken++\n	}\n	return nil\n", create},
		"a claim replaces only what was read":                        {"journal/journal.go", "slices.Contains(own, other.Write)", "true", create},
		"nothing is sent before the store has proved its conditions": {"journal/journal.go", "	err := j.store.Prove(ctx)\n", "	var err error\n", create},
		"the response is recorded before it is used":                 {"journal/call.go", "	r.setLast(r.Claim, jobID)\n	c.persist(&r)\n", "	r.setLast(r.Claim, jobID)\n	c.letExit()\n", create},
		"an outcome is offered until the store takes it":             {"journal/call.go", "	if !isTransient(c.noteProblem(c.write(ctx, r))) {", "	if _ = c.noteProblem(c.write(ctx, r)); true {", "long creates, remote state"},
		"an adoption is recorded": {
			"journal/call.go", "	return c.write(context.WithoutCancel(c.ctx), &r)\n", "	return nil\n", "two aliases, one name, one destroyed",
		},

		"a plan only reads": {
			"job/plan.go", "	if c.Result == send.MaySend {\n", "	if c.Result == send.MaySend {\n		_ = p.Sender.Journal.Begin(ctx, c.request.Wanted).Adopt()\n", "-replace only planned",
		},
		"an adoption is recorded before its job is read": {
			"send/send.go", "	err := o.call.Adopt() ", "	if out := o.readJob(ctx, Adopted, record); out.Err != nil {\n		return out\n	}\n	err := o.call.Adopt() ", "other address and alias",
		},
		"a taint keeps the job":                {"job/delete.go", "	case r.isOfTainted(), r.MayBeSame:\n", "	case r.MayBeSame:\n", "taint"},
		"what may be the same keeps the job":   {"job/delete.go", "	case r.isOfTainted(), r.MayBeSame:\n", "	case r.isOfTainted():\n", "triggers known late"},
		"a Delete gives a lost record its job": {"journal/remove.go", "o.PromptHash != \"\" && j.hasLost(r, o)", "false", "life: triggers known late, without a journal"},
		"what replaces a closed job may be the same": {
			"job/decide.go", "		c.mayBeSame = c.mayBeSame || e.plan.promptText().IsUnknown()\n", "", "life: the prompt for an archived job is known late",
		},
		"what may become a retry is planned as one":       {"job/decide.go", "	case isFailed && options.isUnknown:\n", "	case false:\n", "life: on_failure of a failed job is known late"},
		"a plan that may retry promises no adoption":      {"job/wait_options.go", "return o.onFailure == onRetry || o.isUnknown", "return o.onFailure == onRetry", "life: an adoption was promised, and on_failure was not known"},
		"an apply replaces no job that its plan has kept": {"job/plan.go", "isRead: p.run.isRead(id)", "isRead: true", "life: a job is given up when its plan is applied"},
		"what this run has left stops another prompt": {
			"send/judge.go", "record.IsFreed() && !s.Journal.IsLeftOrKeptByThisRun(record):", "record.IsFreed() && !(s.Journal.IsLeftOrKeptByThisRun(record) && record.HasArguments(r.Wanted) && record.HasPrompt(r.Prompt)):", "life: a changed address, and another prompt for an active job, started a second one",
		},
		"a job is left to a create of the same run": {"journal/remove.go", "		r.Fate, r.FateBy = fate, j.process.Run\n", "		r.Fate = fate\n", "other address and alias, destroyed first"},
		"a job is left to no create of another run": {"journal/journal.go", " && r.FateBy == j.process.Run\n", "\n", "terraform destroy"},
		"a destroy keeps what another object has adopted": {
			"journal/remove.go", "isAdopted := !r.IsFree() && o.Holder != \"\" && r.Holder != \"\" && r.Holder != o.Holder\n", "isAdopted := false\n", "two aliases, one name, one destroyed",
		},
		"a destroy releases": {"journal/remove.go", "		r.Fate, r.FateBy = fate, j.process.Run\n", "		r.FateBy = j.process.Run\n", "terraform destroy"},
		"a replacement without its journal fails": {
			"job/delete.go", "	case err != nil && isReplaced: // the create", "	case false: // the create", "-replace",
		},
	}
}

// TestMutants applies each mutant in a test of its own, which must find a schedule.
func TestMutants(t *testing.T) {
	for name, m := range mutants() {
		t.Run(name, func(t *testing.T) {
			file, err := filepath.Abs(filepath.Join("..", "..", filepath.FromSlash(m.file)))
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(file)
			if err != nil || strings.Count(string(text), m.line) != 1 {
				t.Fatalf("%v, or the line is not there once:\n%s", err, m.line)
			}
			if !everything() {
				return
			}
			changed := filepath.Join(t.TempDir(), "mutant.go")
			overlay, _ := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
			for path, text := range map[string]string{changed: strings.Replace(string(text), m.line, m.instead, 1), changed + ".json": string(overlay)} {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			where, test := ".", "TestX17_explore/^all$/^"+strings.ReplaceAll(m.finds, " ", "_")+"$"
			if life, isLife := strings.CutPrefix(m.finds, "life: "); isLife {
				where, test = "../lives", "TestLives/^"+strings.ReplaceAll(life, " ", "_")+"$"
			}
			cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-timeout=1h", "-overlay="+changed+".json", "-run="+test, where)
			cmd.Env = append(os.Environ(), "EXPLORE=more")
			output, err := cmd.CombinedOutput()
			found := regexp.MustCompile(`(?s)(?:explore_test.go:\d+: |wrong: )(.*?)(?:the world:|\n)`).FindSubmatch(output)
			if err == nil || found == nil {
				t.Fatalf("no schedule shows it: %v\n%s", err, output)
			}
			t.Logf("%s", found[1])
		})
	}
	if !everything() {
		t.Skip("only whether their lines exist was tried: make chaos sets EXPLORE=all, which takes minutes")
	}
}
