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
	finds               string // the scenario that shows it
}

// mutants are the rows of "Where the promise is kept" in internal/README.md. Some rows
// are not here, because no cut of a run shows them: an HTTP library repeats a request when a
// connection breaks under it, a panic is no cut, the end of an earlier run of a job needs a
// service that shows an old record, a message that is forgotten too early one that refuses
// another, a laptop sleeps between a claim and its POST, and a folder's claim and the mark before sending are one step.
// Their own tests show them.
func mutants() map[string]mutant {
	const create, message, failed = "create in bucket", "message in bucket", "failed job in bucket"
	return map[string]mutant{
		"an unknown outcome is not taken for a refusal": {
			"agentapi/classify.go", "	return nil, c.newError(r, ErrUnknownOutcome, got, err)\n}", "	return nil, c.newError(r, ErrRefused, got, err)\n}", create,
		},
		"the provider waits for the response": {"agentapi/transport.go", "ctx, stop = d.detach(ctx)", "stop = func() {}", create},
		"the id is in the state before the wait": {
			"job/resource.go", "		out.save(ctx, &job)\n		if !options.enabled {", "		if !options.enabled {", create,
		},
		"a wait that stops early does not taint":         {"job/await.go", "isCreate || errors.Is(err, context.Canceled)", "false", create},
		"an accepted message is in the state":            {"job/update.go", "		out.save(ctx, job)\n", "", message},
		"a shutdown waits for responses":                 {"plugin/serve.go", "		drain(ctx, process, shutdownDrain)\n", "", create},
		"a plugin whose CLI is gone waits for responses": {"plugin/serve.go", "		drain(ctx, process, cliGoneDrain)\n", "", "late response in bucket"},

		"an unknown create stops": {"journal/judge.go", "	case r.IsUnknownCreate() && !j.IsForgotten(r):\n		return UnknownCreate\n", "", create},
		"the same request adopts": {
			"journal/judge.go", "	case w.IsPromptUnknown || r.Last.has(w.Prompt):\n		return Adopt\n", "	case w.IsPromptUnknown || r.Last.has(w.Prompt):\n		return Send\n", create,
		},
		"another prompt stops": {"journal/judge.go", "	return OtherPrompt\n", "	return Send\n", "state lost, edited in bucket"},
		"a name has one resource": {
			"journal/judge.go", "	case r.Job != \"\" && r.Job != w.Predecessor && (r.Run == j.process.Run || j.IsInState(r.Job)):\n		return Twin\n", "",
			"state lost, two aliases, one name in bucket",
		},
		"a message goes to the job that the name has": {
			"journal/judge.go", "	case r.Job != w.Job && !j.IsForgotten(r):\n		return OtherJob\n", "", "older state, after -replace, edited in bucket",
		},
		"a message of an earlier run counts as sent": {"journal/judge.go", "	case r.Last.Unknown:\n		return UnknownMessage\n	}\n	return AlreadySent\n", "	}\n	return Send\n", message},
		"a claim that is over may have been sent":    {"journal/judge.go", "		r = j.settle(r)\n", "", create},

		"no POST without a claim":                                    {"journal/call.go", "		return ErrTaken\n	}\n	return err\n", "		return ErrTaken\n	}\n	return nil\n", create},
		"a claim replaces only what was read":                        {"journal/call.go", "now == nil || !slices.Contains(c.writes, now.Write) {", "now == nil || slices.Contains(c.writes, \"\") {", create},
		"nothing is sent before the store has proved its conditions": {"journal/journal.go", "	err := j.store.Prove(ctx)\n", "	var err error\n", create},
		"the response is recorded before it is used": {
			"journal/call.go", "	r.accept(r.Claim, jobID, c.journal.IsInState(r.Job))\n	c.keep(c.journal.withoutForgotten(&r))\n", "	r.accept(r.Claim, jobID, c.journal.IsInState(r.Job))\n	c.release()\n", create,
		},
		"an outcome is offered until the store takes it": {"journal/call.go", "	if !c.failed(c.write(ctx, r)) {", "	if c.failed(c.write(ctx, r)); true {", "long creates, remote state in bucket"},
		"an adoption is recorded": {
			"journal/call.go", "	return c.write(context.WithoutCancel(c.ctx), &r)\n", "	return nil\n", "state lost, two aliases, one name in bucket",
		},

		"a plan releases what it replaces": {
			"job/plan_create.go", "case c.isOwn && (isAccepted ||", "case c.isOwn && false && (isAccepted ||", "-replace, create first in bucket",
		},
		"a plan releases what it destroys": {
			"job/plan.go", "	if d.names.leave(", "	if !d.names.leave(", "other address, no moved block in bucket",
		},
		"a plan that was not applied is taken back": {
			"job/record.go", "	case record.Job == facts.ID && record.Released:\n", "	case record.Job == facts.ID && record.Released && false:\n",
			"-replace only planned, then the state lost in bucket",
		},
		"a plan keeps a failed job":                       {"job/plan_create.go", "c.verdict == journal.Adopt && hasFailed", "c.verdict == journal.Twin && hasFailed", failed},
		"a destroy keeps a failed job for its successor":  {"job/marks.go", "(s.KeepsFailed ||", "(false ||", failed},
		"a destroy keeps what another object has adopted": {"journal/journal.go", "r.Released, adoption != AnyAdoption && r.Adoption != adoption:", "r.Released:", "failed job, create first, again in bucket"},
		"a destroy releases":                              {"job/resource.go", "		r.provider.releaseName(ctx, &job, marks, &resp.Diagnostics)\n", "", "terraform destroy in bucket"},
		"another run's job is named": {
			"job/record.go", "		validate.WarnAt(diags, path.Root(\"name\"), wording.OtherJob(facts, record))\n", "", "-replace, remote state in bucket",
		},
		"a test has records of its own": {"provider/config.go", "process != nil && process.Command == \"test\"", "false", "test beside production in bucket"},
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
			scenario := "TestX17_explore/^all$/^" + strings.ReplaceAll(m.finds, " ", "_") + "$"
			cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-timeout=1h", "-overlay="+changed+".json", "-run="+scenario, ".")
			cmd.Env = append(os.Environ(), "EXPLORE=more")
			output, err := cmd.CombinedOutput()
			found := regexp.MustCompile(`(?s)(?:explore|meeting)_test.go:\d+: (.*?)the world:|(inconsistent result after apply.*?)\n`).FindSubmatch(output)
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
