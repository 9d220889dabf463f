// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

const recipes = "guides/recipes/"

func recipeFiles() []string {
	var files []string
	for _, name := range []string{"schedule", "release", "openapi", "notify"} {
		files = append(files, recipes+name+".tf", recipes+name+".yml")
	}
	return append(files, recipes+"module.tf")
}

var expression = regexp.MustCompile(`\$\{\{ (\S+) \}\}`)

// environment resolves the expressions in the env of a workflow or step. Each must have a value.
func environment(t *testing.T, env, values map[string]string) (resolved []string) {
	t.Helper()
	for name, text := range env {
		resolved = append(resolved, name+"="+expression.ReplaceAllStringFunc(text, func(match string) string {
			value, ok := values[expression.FindStringSubmatch(match)[1]]
			if !ok {
				t.Fatalf("%s: no value for %s", name, match)
			}
			return value
		}))
	}
	return resolved
}

// decode reads YAML strictly: a misspelt key is an error.
func (s trials) decode(t *testing.T, name string, into any) {
	t.Helper()
	decoder := yaml.NewDecoder(strings.NewReader(s.read(t, name)))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// workflowEnv is what the recipe's part of a workflow sets.
func (s trials) workflowEnv(t *testing.T, recipe string, values map[string]string) []string {
	t.Helper()
	var workflow struct {
		On struct {
			Schedule []struct{ Cron string }
			Push     struct{ Branches, Tags, Paths []string }
		}
		Env map[string]string
	}
	s.decode(t, recipe, &workflow)
	return environment(t, workflow.Env, values)
}

func TestAccModuleFromGit(t *testing.T) {
	t.Parallel()
	all := newTrials(t)
	all.since(t, "1.10.0", "1.11.0") // ephemeral variables
	s := all.start(t, 0)
	s.copyModule(t, "module", ".tf")
	const source = "git::https://github.com/agentjobs/terraform-provider-agent.git//examples/" + module + "?ref=v0.1.0"
	s.write(t, "main.tf", strings.Replace(s.main(t, recipes+"module.tf"), source, "./module", 1))
	s.call(t, "init")
	s.call(t, "apply", "-auto-approve")
	if diff := cmp.Diff([][]string{{"Add a quickstart for the Python SDK"}}, s.prompts()); diff != "" {
		t.Error(diff)
	}
}

// The steps after the apply, with stand-ins for curl and gh.
func TestAccNotify(t *testing.T) {
	t.Parallel()
	all := newTrials(t)
	if runtime.GOOS == "windows" {
		t.Skip("the steps are for a shell")
	}
	var steps []struct {
		Name, Run string
		Env       map[string]string
	}
	all.decode(t, recipes+"notify.yml", &steps)
	s := all.start(t, 0)
	setup, _, _ := strings.Cut(all.read(t, "provider/provider.tf"), "resource ")
	s.write(t, "main.tf", setup+all.read(t, "resources/agent_job/resource_strict.tf")+all.read(t, recipes+"notify.tf"))
	s.call(t, "apply", "-auto-approve")
	values := map[string]string{"secrets.SLACK_WEBHOOK_URL": "https://hooks.example.com/1", "github.token": "token"}
	const standIns = `curl() { cat >posted; echo "$@"; }; gh() { printf '%s\n' "$@"; }` + "\n"
	var shown []string
	for _, step := range steps {
		shown = append(shown, s.shell(t, standIns+step.Run, environment(t, step.Env, values)...))
	}
	link := "Job completed: " + s.service.Jobs()[0].PullRequest
	want := []string{"--fail --silent --show-error --data @- https://hooks.example.com/1\n", "issue\ncomment\n12\n--body\n" + link + "\n"}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Error(diff)
	}
	posted, err := os.ReadFile(filepath.Join(s.dir, "posted"))
	if err != nil {
		t.Fatal(err)
	}
	var body map[string]string
	if err := json.Unmarshal(posted, &body); err != nil || body["text"] != link {
		t.Errorf("posted %q: %v", posted, err)
	}
}

var uses = regexp.MustCompile(`uses: (\S+)@(.*)`)

// Actions in examples are pinned, to the commits that the project's own
// workflows use, which Dependabot updates.
func TestActionPins(t *testing.T) {
	const root = "../../.."
	pins := func(files []string, dir string) map[string]string {
		all := map[string]string{}
		for _, file := range files {
			text, err := os.ReadFile(filepath.Join(root, dir, file))
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range uses.FindAllStringSubmatch(string(text), -1) {
				all[match[1]] = match[2]
			}
		}
		return all
	}
	own := pins(filesIn(t, root+"/.github", ".yml"), ".github")
	pinned := regexp.MustCompile(`^[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	for action, version := range pins(filesIn(t, root+"/examples", ".yml"), "examples") {
		if want, used := own[action]; used && version != want || !pinned.MatchString(version) {
			t.Errorf("%s@%s in examples, %q in .github/workflows", action, version, want)
		}
	}
}
