// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// Red without: the entry before the POST, the id after it, the takeover, the
// look at a living orphan's lock, or the orphan's own end.
func TestX04_kill_at_any_moment(t *testing.T) {
	inRounds(t, 3, mode{store: defaultFolder, endings: kills})
}

func TestX04_S3_kill_at_any_moment(t *testing.T) {
	needsBucket(t)
	inRounds(t, 3, mode{store: bucket, endings: kills})
}

// A plugin whose CLI is gone stays until the answers are on disk, although
// nobody reads its log, and the next apply waits for them. Red without:
// cliGone, cliGoneDrain, and each signal that main ignores.
func TestX04_CLI_gone_while_POSTs_are_in_flight(t *testing.T) {
	for name, end := range map[string]func(*process){
		"killed":          func(p *process) { p.signal(syscall.SIGKILL) },
		"terminal closed": func(p *process) { p.signalGroup(syscall.SIGHUP) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkingDir(t, simulator.Script{}, jobs(canaryPrompt))
			w.env = []string{"TF_LOG=DEBUG"}
			w.sim.Inject(
				simulator.Fault{Kind: simulator.KindCreate, Delay: 500 * time.Millisecond, Times: 2},
				simulator.Fault{Kind: simulator.KindCreate, Delay: 5 * time.Second}, // longer than shutdownDrain
			)
			p := w.start("apply")
			w.until("the POSTs are read", func() bool { return w.sim.Counts().Create == 3 })
			end(p)
			<-p.done
			w.env = nil // and at once
			w.run("apply")
			w.posts(3, 0)
			w.assertEachJobOnce()
		})
	}
}

// A plugin whose CLI is gone does not live on for a refresh. Red without: orphaned.
func TestX04_CLI_gone_while_a_job_is_read(t *testing.T) {
	t.Parallel()
	w := newWorkingDir(t, simulator.Script{}, oneJob)
	w.run("apply")
	sockets, err := os.MkdirTemp("", "x04") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(sockets) }()
	w.env = []string{"TMPDIR=" + sockets}
	read := w.sim.Counts().Get
	w.sim.Inject(simulator.Fault{Kind: simulator.KindGet, Delay: time.Minute})
	p := w.start("plan")
	w.until("the job is read", func() bool { return w.sim.Counts().Get > read })
	p.signal(syscall.SIGKILL)
	<-p.done
	listening := func() bool {
		files, err := filepath.Glob(filepath.Join(sockets, "plugin*"))
		if err != nil || len(files) != 1 {
			t.Fatalf("sockets: %q, %v", files, err)
		}
		conn, err := net.Dial("unix", files[0])
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}
	w.until("the plugin has ended", func() bool { return !listening() })
}
