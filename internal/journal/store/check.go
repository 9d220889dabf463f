// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
)

const (
	checkLimit = 10 * time.Second // of each step
	clockLimit = time.Minute
)

var errCheck = errors.New("the check has failed")

// Check tries a store as a run uses it, in a scope that no journal has, and prints a line for each step. It continues
// after a failure, so that one check shows every right that is missing.
func Check(ctx context.Context, w io.Writer, l Location) error {
	fmt.Fprintf(w, "Journal: %s\n", l)
	s := Open(l, "check-"+NewName("", "").ID, new(cli.Process))
	if f, ok := s.(*folder); ok {
		defer func() { _ = os.Remove(f.dir) }() // empty, or what is left in it was reported
	}
	return check(ctx, w, s)
}

func check(ctx context.Context, w io.Writer, s Store) error {
	name := NewName(CreateKey("check", "", ""), "check")
	mayRemain, written, ahead := false, time.Time{}, time.Duration(0)
	list := func(want int, wrong string) func(context.Context) error {
		return func(ctx context.Context) error {
			names, err := s.List(ctx, "")
			if err == nil && len(names) != want {
				err = errors.New(wrong)
			}
			return err
		}
	}
	read := func(ctx context.Context) error {
		e, err := s.Read(ctx, name)
		if err == nil && e != nil {
			err = fmt.Errorf("%s is there", s.Where(name))
		}
		return err
	}
	write := func(e *Entry) func(context.Context) error {
		return func(ctx context.Context) error {
			err := s.Write(ctx, name, e)
			written = time.Now()
			mayRemain = mayRemain || err == nil || ctx.Err() != nil
			return err
		}
	}
	remove := func(ctx context.Context) error {
		err := s.Remove(ctx, name)
		mayRemain = mayRemain && err != nil
		return err
	}
	works, failed, failures := map[string]bool{}, map[string]bool{}, 0
	for _, step := range []struct {
		op, needs, name string // needs is what must work for the step to mean anything
		try             func(context.Context) error
	}{
		{"list", "", "list, after connecting", list(0, "a new scope is not empty")},
		{"read", "", "read an entry that does not exist", read},
		{"write", "", "write an entry", write(&Entry{Status: Accepted, JobID: "first"})},
		{"write", "write", "overwrite it at once", write(&Entry{})}, // without a status, so that a read shows when it was written
		{"read", "write", "read it", func(ctx context.Context) error {
			e, err := s.Read(ctx, name)
			switch {
			case err != nil:
				return err
			case e == nil:
				return errors.New("what was written is not there")
			case e.JobID != "":
				return errors.New("what was overwritten is still there")
			}
			ahead = e.SentAt.Sub(written)
			return nil
		}},
		{"list", "write", "list it", list(1, "what was written is not listed")},
		{"remove", "", "remove it", remove},
		{"list", "remove", "list after the removal", list(0, "what was removed is still listed: a retention may keep "+s.Where(name))},
		{"read", "list remove", "read after the removal", read},
		{"remove", "", "remove it again", remove},
	} {
		unmet := func(op string) bool { return failed[op] || !works[op] }
		if failed[step.op] || slices.ContainsFunc(strings.Fields(step.needs), unmet) {
			fmt.Fprintf(w, "-                    %s: not tried, because of what has failed\n", step.name)
			continue
		}
		stepCtx, cancel := context.WithTimeout(ctx, checkLimit)
		start := time.Now()
		err := step.try(stepCtx)
		took := time.Since(start).Seconds() * 1000
		cancel()
		if ctx.Err() != nil {
			fmt.Fprintln(w, "Interrupted.")
			failures++
			break
		}
		if err == nil {
			works[step.op] = true
			fmt.Fprintf(w, "ok      %8.1f ms  %s\n", took, step.name)
			continue
		}
		failures++
		if step.op == "read" && failed["list"] && !works["write"] { // clouds hide what does not exist from who cannot list
			err = fmt.Errorf("%w; perhaps only because it cannot be listed", err)
		} else {
			failed[step.op] = true
		}
		fmt.Fprintf(w, "FAILED  %8.1f ms  %s: %s\n", took, step.name, err)
	}
	if ahead.Abs() > clockLimit {
		fmt.Fprintf(w, "note    the store's clock and this machine's are %s apart\n", ahead.Abs().Round(time.Second))
	}
	if mayRemain {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkLimit)
		defer cancel()
		if err := remove(ctx); err != nil {
			fmt.Fprintf(w, "note    could not remove %s; if no right is missing, a retention keeps it\n", s.Where(name))
		}
	}
	if failures == 0 {
		fmt.Fprintln(w, "All is well: plans and applies can keep their journal there.")
		return nil
	}
	if !failed["list"] && !failed["read"] && ctx.Err() == nil {
		fmt.Fprintln(w, "A role that only plans needs no more than listing and reading, which work.")
	}
	return errCheck
}
