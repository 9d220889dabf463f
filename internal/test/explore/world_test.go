// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !race && unix

package explore

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// store is where the journal is kept.
type store int

const (
	bucket store = iota
	namedFolder
	defaultFolder
)

// world is what outlives a run.
type world struct {
	*testing.T

	store  store
	sim    *simulator.Server
	wire   *faultserver.Server
	bucket *fakes3.Server
	dir    string // holds a folder of each process, and the journal, if it is in a folder

	mu        sync.Mutex
	processes []*process
	modified  map[string]time.Time // of files, by the clock of the test
	state     map[string]*object   // as it was stored, by address
	everSeen  map[string]bool      // ids of jobs that were in a stored state
	tainted   bool                 // a stored object was
	shown     strings.Builder      // what a user has read
	runs      []*run
	occurred  map[string]bool
}

// object is a resource in a state.
type object struct {
	value    tftypes.Value
	private  []byte
	identity *tfprotov6.ResourceIdentityData
	tainted  bool
	deposed  *object // replaced, and not destroyed yet
}

func newWorld(t *testing.T, s store, script simulator.Script) *world {
	w := &world{
		T: t, store: s, sim: harness.NewSimulator(harness.Always(script)), dir: t.TempDir(),
		modified: map[string]time.Time{}, state: map[string]*object{}, everSeen: map[string]bool{}, occurred: map[string]bool{},
	}
	w.wire = faultserver.New(t, http.HandlerFunc(w.serve), faultserver.Options{InMemory: true})
	if s == bucket {
		w.bucket = &fakes3.Server{Objects: map[string]*fakes3.Object{}}
	} else if err := os.Mkdir(w.folder(), 0o700); err != nil {
		t.Fatal(err)
	}
	return w
}

const requestTimeout = 5 * time.Second

// saved is a world without live processes, to be continued more than once.
type saved struct {
	at    time.Time
	world world
	sim   *simulator.Server
	files map[string][]byte // of the journal
}

func (w *world) save() *saved {
	s := &saved{at: time.Now(), sim: w.sim.Clone(), files: w.files()}
	w.mu.Lock()
	defer w.mu.Unlock()
	s.world = world{
		modified: maps.Clone(w.modified), state: maps.Clone(w.state), everSeen: maps.Clone(w.everSeen), tainted: w.tainted,
		occurred: maps.Clone(w.occurred), runs: slices.Clone(w.runs), processes: slices.Clone(w.processes),
	}
	s.world.shown.WriteString(w.shown.String())
	return s
}

// restore makes a fresh world into the saved one.
func (w *world) restore(s *saved) {
	time.Sleep(time.Until(s.at))
	w.sim, w.tainted, w.runs, w.processes = s.sim.Clone(), s.world.tainted, slices.Clone(s.world.runs), slices.Clone(s.world.processes)
	w.modified, w.state, w.everSeen, w.occurred = maps.Clone(s.world.modified), maps.Clone(s.world.state), maps.Clone(s.world.everSeen), maps.Clone(s.world.occurred)
	w.shown.WriteString(s.world.shown.String())
	for name, text := range s.files {
		if w.bucket != nil {
			w.bucket.Objects["prefix/"+name] = &fakes3.Object{Text: text, Modified: s.at}
		} else if err := os.WriteFile(filepath.Join(w.folder(), name), text, 0o600); err != nil {
			w.Fatal(err)
		}
	}
}

// files are those of the journal, or its objects.
func (w *world) files() map[string][]byte {
	texts := map[string][]byte{}
	if w.bucket != nil {
		w.bucket.Lock()
		defer w.bucket.Unlock()
		for name, object := range w.bucket.Objects {
			texts[filepath.Base(name)] = object.Text
		}
		return texts
	}
	files, _ := filepath.Glob(filepath.Join(w.folder(), "*.json"))
	for _, file := range files {
		texts[filepath.Base(file)], _ = os.ReadFile(file)
	}
	return texts
}

// end kills what is still alive, and gives it the time to run out.
func (w *world) end() {
	for _, p := range w.processes {
		if !p.dead.Load() {
			p.die()
		}
	}
	time.Sleep(time.Hour)
}

// serve answers a request, which names its process in User-Agent. A request that has
// arrived is answered even if its process has ended.
func (w *world) serve(resp http.ResponseWriter, req *http.Request) {
	p := w.sender(req)
	name := req.Method
	if req.Method == http.MethodPost {
		name = map[bool]string{true: "POST message", false: "POST create"}[strings.HasSuffix(req.URL.Path, "/message")]
	}
	if p.run.step(request, name+" arrives") == loseRequest {
		p.hangUp()
		return
	}
	if late := p.run.cut.late; late > 0 && req.Method == http.MethodPost {
		time.Sleep(late)
	}
	if req.Method == http.MethodGet && p.run.serviceDown.Load() {
		http.Error(resp, "", http.StatusServiceUnavailable)
		return
	}
	w.sim.ServeHTTP(resp, req)
	if p.run.step(response, "response to "+name) == loseResponse {
		p.hangUp()
	}
}

func (w *world) sender(req *http.Request) *process {
	var pid int
	if _, err := fmt.Sscanf(req.UserAgent(), "terraform-provider-agent/%d", &pid); err != nil {
		w.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.processes[pid]
}

// loseDisk loses the default folder, to which a provider without a CLI may be writing.
func (w *world) loseDisk() {
	lost := w.folder() + ".lost"
	if err := errors.Join(os.Rename(w.folder(), lost), os.Mkdir(w.folder(), 0o700), os.RemoveAll(lost)); err != nil {
		w.Fatal(err)
	}
}

// folder is the journal.
func (w *world) folder() string { return filepath.Join(w.dir, "journal") }

// modTime is when a file was written first, by the clock of the test.
func (p *process) modTime(info fs.FileInfo) time.Time {
	w := p.run.world
	p.run.step(journalAccess, "journal file")
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.modified[info.Name()]; !known {
		w.modified[info.Name()] = time.Now()
	}
	return w.modified[info.Name()]
}

// entry is what the journal stores of a request, as far as it matters here.
type entry struct {
	ID       string
	Key      string
	Job      string
	Accepted bool
	Taken    bool
	Sender   cli.Sender
	Run      string
	Sent     int64
	Wait     int64
}

// entries are those in the journal, in the order in which they were sent.
func (w *world) entries() (entries []entry) {
	for name, text := range w.files() {
		lines := strings.Fields(strings.TrimSpace(string(text)))
		e := entry{ID: strings.TrimSuffix(name, ".json")}
		if len(lines) == 0 || json.Unmarshal([]byte(lines[len(lines)-1]), &e) != nil {
			continue
		}
		e.Sent = cmp.Or(e.Sent, w.modified[name].UnixMilli())
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.Sent, b.Sent), cmp.Compare(a.Key, b.Key), strings.Compare(a.ID, b.ID))
	})
	return entries
}

// fingerprint is equal for worlds that the next run cannot tell apart.
func (w *world) fingerprint() string {
	var b strings.Builder
	fmt.Fprintf(&b, "only interrupted %t, or the CLI killed %t\n", w.cutOnlyBy(interrupted), w.cutOnlyBy(interrupted, cliKilled, stalled))
	jobs := map[string]int{"": -1}
	for i, job := range w.sim.Jobs() {
		jobs[job.ID] = i
		fmt.Fprintf(&b, "job %d %s %s %q stored %t shown %t\n", i, job.Project, job.Status, job.Prompts, w.everSeen[job.ID], strings.Contains(w.shown.String(), job.ID))
	}
	entries := w.entries()
	w.mu.Lock()
	defer w.mu.Unlock()
	position := map[string]int{}
	for i, e := range entries {
		position[e.ID] = i
		last := fmt.Sprint(len(w.runs)-1) == e.Run
		fmt.Fprintf(&b, "entry %.3s job %d answered %t taken %t last run %t wait %t alive %t\n", e.Key, jobs[e.Job], e.Accepted, e.Taken, last, e.Wait > 0, w.alive(e.Sender))
	}
	for _, address := range slices.Sorted(maps.Keys(w.state)) {
		for o := w.state[address]; o != nil; o = o.deposed {
			var private map[string]string
			_ = json.Unmarshal(o.private, &private)
			var ref struct{ I string }
			text, _ := private["journal"], error(nil)
			_ = json.Unmarshal([]byte(text), &ref)
			fmt.Fprintf(&b, "%s job %d %q %q tainted %t marks %q\n", address, jobs[get(o.value, "id")], get(o.value, "prompt"), get(o.value, "status"), o.tainted, slices.Sorted(maps.Keys(private)))
		}
	}
	return b.String()
}

// alive reports whether a process runs. w.mu must be locked.
func (w *world) alive(s cli.Sender) bool {
	return s.PID < len(w.processes) && !w.processes[s.PID].dead.Load()
}

// orphans reports whether processes of earlier runs are still alive.
func (w *world) orphans() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.processes, func(p *process) bool { return !p.dead.Load() })
}

// get is a text attribute of an object.
func get(object tftypes.Value, name string) (text string) {
	values := map[string]tftypes.Value{}
	if object.IsNull() || object.As(&values) != nil || !values[name].IsKnown() {
		return ""
	}
	_ = values[name].As(&text)
	return text
}

// storeState is the CLI writing its state.
func (w *world) storeState(state map[string]*object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = map[string]*object{}
	for address, o := range state {
		copied := *o
		w.state[address] = &copied
		for o := &copied; o != nil; o = o.deposed {
			w.everSeen[get(o.value, "id")] = true
			w.tainted = w.tainted || o.tainted
		}
	}
}

// show is the CLI printing diagnostics.
func (w *world) show(diags []*tfprotov6.Diagnostic) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range diags {
		w.occurred[d.Summary] = true
	}
	w.shown.WriteString(fakecli.Text(diags))
}

// settings is the configuration of the provider.
func (p *process) settings(forget []string) fakecli.Attrs {
	w := p.run.world
	config := fakecli.Attrs{"request_timeout": requestTimeout.String(), "base_url": w.wire.URL, "admin_key": harness.CanaryKey, "project_id": harness.Project}
	journal := fakecli.Attrs{}
	switch w.store {
	case bucket:
		journal["url"] = "s3://bucket/prefix?region=us-east-1&endpoint=http://127.0.0.1:2"
	case namedFolder:
		journal["url"] = p.journal()
	}
	if len(forget) > 0 {
		var ids []tftypes.Value
		for _, id := range forget {
			ids = append(ids, tftypes.NewValue(tftypes.String, id))
		}
		journal["forget"] = tftypes.NewValue(tftypes.List{ElementType: tftypes.String}, ids)
	}
	if len(journal) > 0 {
		config["journal"] = journal
	}
	return config
}
