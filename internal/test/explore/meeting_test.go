// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !race && unix

package explore

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// meeting is how two runs without a lock take turns: the second one starts when the first one
// comes to a step, and stops for it at another.
type meeting struct {
	at    int  // the step of the first run at which the second one starts
	until int  // the step of the second run at which the first one continues, to its end or to back
	back  int  // the step of the first run at which the second one continues; 0: when the first has ended
	races bool // the second one does not stop
}

func (m *meeting) String() string {
	text := fmt.Sprintf("the second run starts at step %d of the first one, which continues at step %d of the second one", m.at, m.until)
	if m.races {
		text += ", and neither waits any more"
	}
	if m.back > 0 {
		text += fmt.Sprintf(", until its own step %d", m.back)
	}
	return text + "\n"
}

// play plays both runs.
func (m *meeting) play(w *world, first, second command, late time.Duration) {
	a, b := w.newRun(first, cut{late: late}), w.newRun(second, cut{late: late})
	a.pauses = []pause{{m.at, b, m.until}}
	if !m.races {
		b.pauses = []pause{{m.until, a, m.back}}
	}
	if m.back > 0 {
		a.pauses = append(a.pauses, pause{m.back, b, 0})
	}
	var both sync.WaitGroup
	both.Go(func() {
		w.await(longestPause, func() bool { return a.has(m.at) })
		b.play()
	})
	a.play()
	both.Wait()
}

// meet plays all meetings of two runs whose steps are those of a run on its own.
func (e *explorer) meet(steps []stepTaken) {
	points := []int{1} // the others change nothing that the other run could see
	applying := slices.IndexFunc(steps, func(s stepTaken) bool { return s.name == "ApplyResourceChange" })
	for i, s := range steps {
		if i > applying && s.touches() && s.name != "GET arrives" {
			points = append(points, i+1)
		}
	}
	for _, at := range points {
		for _, until := range points {
			meetings := []*meeting{{at: at, until: until}}
			if at == until || more() {
				meetings = append(meetings, &meeting{at: at, until: until, races: true})
			}
			for _, back := range points {
				if everything() && back > at {
					meetings = append(meetings, &meeting{at: at, until: until, back: back})
				}
			}
			for _, m := range meetings {
				if !e.isDue() {
					continue
				}
				s := &schedule{meets: m}
				e.playMeeting(s)
				if e.isWrong(s) {
					e.report(s)
					return
				}
			}
		}
	}
}

func (e *explorer) playMeeting(s *schedule) {
	synctest.Test(e.T, func(t *testing.T) {
		w := e.cutWorld(t, s)
		s.world = w
		s.meets.play(w, e.scenario.runs[0], *e.scenario.beside, e.scenario.late)
		w.play(e.scenario.runs[0], cut{late: e.scenario.late})
		time.Sleep(5 * time.Minute)
		s.wrong = w.check(e.scenario)
		e.isNew(w.fingerprint())
	})
}
