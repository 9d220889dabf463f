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
// another, a message to a job that failed needs a life, different requests or states share
// a job only in the same journal, and a call that finds its own request looks for ever. Their own tests show them.
func mutants() map[string]mutant {
	const create, message = "create in bucket", "message in bucket"
	return map[string]mutant{
		"an unknown outcome is not taken for a refusal": {
			"agentapi/classify.go", "	return nil, c.newError(r, ErrUnknownOutcome, got, err)\n}", "	return nil, c.newError(r, ErrRefused, got, err)\n}", create,
		},
		"an unknown create blocks an equal one": {"send/send.go", "isGivenUp := earlier.GivenUp && r.Kind == Create", "isGivenUp := r.Kind == Create", create},
		"the provider waits for the response":   {"agentapi/transport.go", "ctx, stop = d.detach(ctx)", "stop = func() {}", create},
		"the id is in the state before the wait": {
			"job/resource.go", "		out.save(ctx, &job)\n		if !options.enabled {", "		if !options.enabled {", create,
		},
		"a wait that stops early does not taint": {"job/await.go", "after == wait.Created || errors.Is(err, context.Canceled)", "false", create},
		"an accepted message is in the state":    {"job/resource.go", "		out.save(ctx, job)\n", "", message},
		"no POST without an entry":               {"journal/call.go", "	if err != nil {\n		c.journal.log(c.ctx, \"withdrawn", "	if errors.Is(err, ErrEarlier) {\n		c.journal.log(c.ctx, \"withdrawn", create},
		"two runs never send equal requests": {
			"journal/call.go", "			return nil, ErrEarlier\n", "			continue\n", "two runs create in bucket",
		},
		"a killed run's jobs are taken over": {"journal/call.go", "			return nil, ErrEarlier\n", "			continue\n", create},
		"an entry stays until a later run has read the state": {
			"journal/plan.go", "return r.Run == j.process.Run }", "return false }", "test after a create in bucket",
		},
		"a destroy forgets only what its run has written": {
			"journal/plan.go", "return name.Run != j.process.Run || !slices", "return !slices", "test after a create in bucket",
		},
		"a job that cannot be read is not replaced": {
			"send/send.go", "			return Outcome{Result: Unreadable, Earlier: earlier, Err: err}, false\n", "			return Outcome{}, true\n", create,
		},
		"no two resources take over one request": {
			"journal/known.go", "	k.dealtWith.add(id)\n	if k.inState.has(job) || k.taken.has(job) {", "	if k.inState.has(job) {",
			"two equal creates in bucket",
		},
		"the response is recorded before it is used": {
			"journal/call.go", "	c.try(c.write)\n	c.release()\n}\n\n// Unknown", "	c.release()\n}\n\n// Unknown", create,
		},
		"another run's job is named": {
			"job/journal.go", "			others = append(others, e)\n", "", "-replace, remote state in bucket",
		},
		"a shutdown waits for responses":                 {"plugin/serve.go", "		drain(ctx, process, shutdownDrain)\n", "", create},
		"a plugin whose CLI is gone waits for responses": {"plugin/serve.go", "		drain(ctx, process, cliGoneDrain)\n", "", "late response in bucket"},
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
