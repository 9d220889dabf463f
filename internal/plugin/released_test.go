// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package plugin

import (
	"context"
	"errors"
	"testing"
	"time"
)

type contextKey struct{}

// A context that was released is over, for whoever still has it.
func TestReleasedContextIsOver(t *testing.T) {
	ends := time.Now().Add(time.Hour)
	parent, cancel := context.WithDeadline(context.WithValue(t.Context(), contextKey{}, 1), ends)
	defer cancel()
	ctx, release := releasable(parent)
	if at, ok := ctx.Deadline(); !ok || !at.Equal(ends) || ctx.Err() != nil || ctx.Value(contextKey{}) != 1 || ctx.Done() != parent.Done() {
		t.Error("the context is not like its parent")
	}
	release()
	select {
	case <-ctx.Done():
	default:
		t.Error("Done is not closed")
	}
	if _, ok := ctx.Deadline(); ok || !errors.Is(ctx.Err(), context.Canceled) || ctx.Value(contextKey{}) != nil {
		t.Errorf("a context that was released: %v", ctx.Err())
	}
}
