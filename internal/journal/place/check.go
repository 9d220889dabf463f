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

// checker tries a store, a step at a time. The note of a step follows its line.
type checker struct {
	store.Store

	works      map[string]bool // by step
	cannotList bool
}

const checkKey = "check" // an earlier check may have written it

func check(ctx context.Context, w io.Writer, s store.Store) error {
	c := &checker{Store: s, works: map[string]bool{}}
	failed := false
	for _, step := range []struct {
		op, name string
		try      func(context.Context) (note string, _ error)
	}{
		{"list", "list, after connecting", c.list},
		{"write", "write, if there is none", c.write},
		{"read", "read", c.read},
		{"prove", "have a write refused if there is one, or if it has changed", c.prove},
	} {
		if step.op == "prove" && !c.works["write"] {
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
		c.works[step.op] = err == nil
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
	case c.works["list"] && c.works["read"] && !c.works["write"]:
		fmt.Fprintln(w, "A role that only plans needs no right to write.")
	}
	return errCheck
}

func (c *checker) list(ctx context.Context) (note string, _ error) {
	_, err := c.List(ctx)
	if c.cannotList = errors.Is(err, store.ErrDenied); c.cannotList {
		return ": denied, so plans make a request for each name: " + err.Error(), nil
	}
	return "", err
}

func (c *checker) write(ctx context.Context) (note string, _ error) {
	_, err := c.Put(ctx, checkKey, []byte("{}\n"), "")
	if errors.Is(err, store.ErrConflict) {
		return ": " + c.Where(checkKey) + " is there from an earlier check", nil
	}
	return "", err
}

func (c *checker) read(ctx context.Context) (note string, _ error) {
	_, v, err := c.Get(ctx, checkKey)
	switch {
	case err == nil && v == "" && c.works["write"]:
		err = errors.New("what was written is not there")
	case errors.Is(err, store.ErrDenied) && c.cannotList && !c.works["write"]: // clouds hide what does not exist from who cannot list
		err = fmt.Errorf("%w; perhaps only because it does not exist", err)
	}
	return "", err
}

func (c *checker) prove(ctx context.Context) (note string, _ error) { return "", c.Prove(ctx) }
