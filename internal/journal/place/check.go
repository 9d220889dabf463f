// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package place

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
)

const checkLimit = 10 * time.Second // of each step

var errCheck = errors.New("the check has failed")

// Check tries a store as a run uses it, in a scope that no journal has, and prints a line for each step. It continues
// after a failure, so that one check shows every right that is missing.
func Check(ctx context.Context, w io.Writer, l Location) error {
	fmt.Fprintf(w, "Journal: %s\n", l)
	scope := "check" // always the same in a bucket, where nothing is deleted
	if l.cloud == nil {
		scope += "-" + strings.ToLower(rand.Text())
		defer func() { _ = os.RemoveAll(filepath.Join(l.Folder, scope)) }()
	}
	return check(ctx, w, l.Open(scope, new(cli.Process)))
}

// check tries each step, whose note follows its line.
func check(ctx context.Context, w io.Writer, s store.Store) error {
	const key = "check" // an earlier check may have written it
	works, cannotList := map[string]bool{}, false
	list := func(ctx context.Context) (note string, _ error) {
		_, err := s.List(ctx)
		if cannotList = errors.Is(err, store.ErrDenied); cannotList {
			return ": denied, so plans make a request for each name: " + err.Error(), nil
		}
		return "", err
	}
	write := func(ctx context.Context) (note string, _ error) {
		_, err := s.Put(ctx, key, []byte("{}\n"), "")
		if errors.Is(err, store.ErrConflict) {
			return ": " + s.Where(key) + " is there from an earlier check", nil
		}
		return "", err
	}
	read := func(ctx context.Context) (note string, _ error) {
		_, v, err := s.Get(ctx, key)
		switch {
		case err == nil && v == "" && works["write"]:
			err = errors.New("what was written is not there")
		case errors.Is(err, store.ErrDenied) && cannotList && !works["write"]: // clouds hide what does not exist from who cannot list
			err = fmt.Errorf("%w; perhaps only because it does not exist", err)
		}
		return "", err
	}
	prove := func(ctx context.Context) (note string, _ error) { return "", s.Prove(ctx) }
	failed := false
	for _, step := range []struct {
		op, name string
		try      func(context.Context) (note string, _ error)
	}{
		{"list", "list, after connecting", list},
		{"write", "write, if there is none", write},
		{"read", "read", read},
		{"prove", "have a write refused if there is one, or if it has changed", prove},
	} {
		if step.op == "prove" && !works["write"] {
			fmt.Fprintf(w, "-                    %s: not tried, because of what has failed\n", step.name)
			continue
		}
		stepCtx, cancel := context.WithTimeout(ctx, checkLimit)
		start := time.Now()
		note, err := step.try(stepCtx)
		took := time.Since(start).Seconds() * 1000
		cancel()
		if ctx.Err() != nil {
			fmt.Fprintln(w, "Interrupted.")
			return errCheck
		}
		works[step.op] = err == nil
		if err != nil {
			failed = true
			fmt.Fprintf(w, "FAILED  %8.1f ms  %s: %s\n", took, step.name, err)
			continue
		}
		fmt.Fprintf(w, "ok      %8.1f ms  %s%s\n", took, step.name, note)
	}
	switch {
	case !failed:
		fmt.Fprintln(w, "All is well: plans and applies can keep their journal there.")
		return nil
	case works["list"] && works["read"] && !works["write"]:
		fmt.Fprintln(w, "A role that only plans needs no right to write.")
	}
	return errCheck
}
