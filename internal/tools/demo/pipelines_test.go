// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

const (
	pipelines = "guides/pipelines/"
	recipes   = "guides/recipes/"
	oneApply  = pipelines + "main.tf"
	reference = "Bring the API reference up to date"
)

func pipelineFiles() []string {
	files := []string{oneApply, recipes + "module.tf"}
	for _, name := range []string{"two-applies.tf", "backend-http.tf", "github-actions.yml", "gitlab-ci.yml", "atlantis.yaml"} {
		files = append(files, pipelines+name)
	}
	for _, name := range []string{"schedule", "release", "merged", "openapi", "notify"} {
		files = append(files, recipes+name+".tf", recipes+name+".yml")
	}
	return files
}

// command is a line of a pipeline or script that calls the CLI.
var command = regexp.MustCompile(`(?m)^ *(?:- )?(?:run: )?(?:exec )?terraform ([^#\n]*)`)

// calls are the calls of the CLI in a pipeline, in their order.
func calls(t *testing.T, pipeline string) (calls [][]string) {
	t.Helper()
	for _, call := range command.FindAllStringSubmatch(read(t, pipelines+pipeline), -1) {
		calls = append(calls, strings.Fields(call[1]))
	}
	if len(calls) < 3 {
		t.Fatalf("%d calls of the CLI", len(calls))
	}
	return calls
}

// configuration is the pipelines', with what a file has in place of its resource.
func configuration(t *testing.T, file string) string {
	t.Helper()
	text := read(t, oneApply)
	if file != oneApply {
		setup, rest, _ := strings.Cut(text, "resource ")
		text = setup + read(t, file)
		if strings.Contains(text, `resource "agent_job"`) && strings.HasPrefix(file, recipes) { // with the outputs, also those for the notification
			_, outputs, _ := strings.Cut(rest, "\n}\n")
			text += outputs + read(t, recipes+"notify.tf")
		}
	}
	return text
}

// startPipeline is start for runners that have the state at a remote backend.
func startPipeline(t *testing.T, jobs time.Duration) *trial {
	t.Helper()
	s := start(t, jobs)
	needs(t, "1.10.0", "1.11.0") // ephemeral variables
	var mu sync.Mutex
	var state, lock []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, err := io.ReadAll(r.Body)
		switch {
		case err != nil:
		case r.Method == "LOCK" && lock != nil:
			w.WriteHeader(http.StatusLocked)
			_, _ = w.Write(lock)
		case r.Method == "LOCK":
			lock = body
		case r.Method == "UNLOCK":
			lock = nil
		case r.Method == http.MethodPost:
			if state = body; bytes.Contains(state, []byte(canary)) {
				t.Error("the key is in the state")
			}
		case state == nil:
			w.WriteHeader(http.StatusNotFound)
		default:
			_, _ = w.Write(state)
		}
	}))
	t.Cleanup(server.Close)
	s.config = withInit
	s.env = append(s.env, "TF_HTTP_ADDRESS="+server.URL, "TF_HTTP_LOCK_ADDRESS="+server.URL, "TF_HTTP_UNLOCK_ADDRESS="+server.URL)
	return s
}

// checkout makes a fresh folder with a configuration, as a runner does.
func (s *trial) checkout(file string) {
	s.Helper()
	s.dir = s.TempDir()
	s.write("main.tf", configuration(s.T, file))
	s.write("backend-http.tf", read(s.T, pipelines+"backend-http.tf"))
}

var expression = regexp.MustCompile(`(\w+): \$\{\{ (\S+) \}\}`)

// Each event starts a job, in a workflow with the recipe's configuration and environment.
//
// Red without: triggers in a recipe. The next event sends nothing, or a message, then.
func TestAccRecipes(t *testing.T) {
	t.Parallel()
	const merged = "Update the documentation for the change below. Edit files in docs/ only, and ask nothing.\n" +
		"If nothing in docs/ has to change, open no pull request.\n\n%s\n"
	for recipe, test := range map[string]struct {
		event  string // an expression or file that differs between runs
		values []string
		want   [][]string
	}{
		"schedule": {"github.run_id", []string{"101", "101", "102"}, slices.Repeat([][]string{{"Correct the spelling in the API reference"}}, 2)},
		"release":  {"github.ref_name", []string{"v1", "v2"}, [][]string{{"Update the API reference for v1"}, {"Update the API reference for v2"}}},
		"merged": {"github.sha", []string{"5f7079d", "5f7079d", "9667f84"}, [][]string{
			{fmt.Sprintf(merged, "5f7079d")}, {fmt.Sprintf(merged, "9667f84")},
		}},
		"openapi": {"openapi.json", []string{"{}", `{"openapi": "3.1.0"}`}, slices.Repeat([][]string{{reference + " with openapi.json"}}, 2)},
	} {
		t.Run(recipe, func(t *testing.T) {
			t.Parallel()
			s := startPipeline(t, 0)
			needs(t, "1.11.0", "1.11.0") // prompt_wo
			s.env = append(s.env, "AGENT_JOURNAL_URL="+t.TempDir())
			for _, value := range test.values {
				s.checkout(recipes + recipe + ".tf")
				s.write("openapi.json", value)
				s.write("change.diff", value)
				for _, match := range expression.FindAllStringSubmatch(read(t, recipes+recipe+".yml"), -1) {
					if match[2] != test.event {
						t.Fatalf("%s: no value for %s", match[1], match[2])
					}
					s.env = append(s.env, match[1]+"="+value)
				}
				for _, call := range calls(t, "github-actions.yml") {
					s.call(call...)
				}
			}
			s.expect(test.want...)
		})
	}
}

// A wait that stops early fails the run, and the next one resumes it.
func TestAccStrict(t *testing.T) {
	t.Parallel()
	s := start(t, time.Hour)
	needs(t, "1.10.0", "1.11.0") // ephemeral variables
	s.write("main.tf", configuration(t, oneApply))
	s.service.Inject(simulator.Fault{Kind: simulator.KindGet, Status: http.StatusForbidden})
	text, ok := s.try("apply", "-auto-approve")
	if ok || !strings.Contains(text, "Resource postcondition failed") || !strings.Contains(text, " is active.") {
		t.Fatalf("an apply whose job keeps running: %t\n%s", ok, text)
	}
	s.service.SetStatus(s.service.Jobs()[0].ID, "completed")
	s.apply()
	s.expect([]string{reference})
}

// The steps after the apply, with stand-ins for curl and gh.
func TestAccNotify(t *testing.T) {
	t.Parallel()
	s := start(t, 0)
	s.write("main.tf", setup(t)+read(t, "resources/agent_job/resource_strict.tf")+read(t, recipes+"notify.tf"))
	s.call("apply", "-auto-approve")
	var steps []struct{ Run string }
	if err := yaml.Unmarshal([]byte(read(t, recipes+"notify.yml")), &steps); err != nil {
		t.Fatal(err)
	}
	s.env = append(s.env, "SLACK_WEBHOOK_URL=https://hooks.example.com/1")
	var got []string
	for _, step := range steps {
		got = append(got, s.shell(`curl() { cat; printf ' %s' "$@"; }; gh() { printf '%s\n' "$@"; }`+"\n"+step.Run))
	}
	link := "Job completed: " + s.service.Jobs()[0].PullRequest
	text, _ := json.Marshal(link)
	want := []string{
		`{"text":` + string(text) + `} --fail --silent --show-error --data @- https://hooks.example.com/1`,
		"issue\ncomment\n12\n--body\n" + link + "\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A runner is killed while it waits, and the next one gets a fresh checkout and
// the state as it is at the backend, with its lock.
//
// Red without: a journal or a second apply. One apply sends again then.
func TestAccLostRunner(t *testing.T) {
	t.Parallel()
	if !canInterrupt {
		t.Skip("needs process groups: the CLI and the provider are killed together")
	}
	const takenOver = "Agent job of an earlier run taken over"
	for _, test := range []struct {
		pipeline, file string
		looks          int    // at the job, in the last call, until it is killed
		says           string // what the last call of the next run shows
	}{
		{"github-actions.yml", oneApply, 1, takenOver},
		{"gitlab-ci.yml", oneApply, 1, takenOver},
		{"two-applies.sh", pipelines + "two-applies.tf", 2, "Modifications complete"},
	} {
		t.Run(test.pipeline, func(t *testing.T) {
			t.Parallel()
			s := startPipeline(t, time.Hour)
			if test.file == oneApply { // a folder that outlives the runners, as the pipelines' bucket does
				s.env = append(s.env, "AGENT_JOURNAL_URL="+t.TempDir())
			}
			calls := calls(t, test.pipeline)
			last := len(calls) - 1
			s.checkout(test.file)
			for _, call := range calls[:last] {
				s.call(call...)
			}
			s.killWhileWaiting(test.looks, calls[last]...)
			s.service.SetStatus(s.service.Jobs()[0].ID, "completed")
			s.service.Inject(simulator.Fault{Kind: simulator.KindCreate, Times: -1, Status: http.StatusBadRequest})

			s.checkout(test.file)
			s.call(calls[0]...)
			text, ok := s.try(calls[1]...)
			lock := regexp.MustCompile(`(?s)Error acquiring the state lock.* ID: +(\S+)`).FindStringSubmatch(text)
			if ok || lock == nil {
				t.Fatalf("with the lock of the lost run: %t\n%s", ok, text)
			}
			s.call("force-unlock", "-force", lock[1])
			for _, call := range calls[1:] {
				text = s.call(call...)
			}
			if !strings.Contains(text, test.says) {
				t.Errorf("%q is not in:\n%s", test.says, text)
			}
			s.expect([]string{reference})
		})
	}
}

// killWhileWaiting calls the CLI and kills it, with the provider, once that has
// looked at the job so often.
func (s *trial) killWhileWaiting(looks int, args ...string) {
	s.Helper()
	cmd := cli.Command(s.Context(), s.config, args...)
	cmd.Dir, cmd.Env = s.dir, append(cmd.Env, s.env...)
	cmd.WaitDelay = grace
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	leadGroup(cmd)
	looks += s.service.Counts().Get
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for s.service.Counts().Get < looks {
		select {
		case err := <-ended:
			s.Fatalf("ended by itself: %v\n%s", err, &text)
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err := signalGroup(cmd, syscall.SIGKILL); err != nil {
		s.Error(err)
	}
	<-ended
}
