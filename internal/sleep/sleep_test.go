// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package sleep

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := For(t.Context(), time.Hour); err != nil || time.Since(start) != time.Hour {
			t.Errorf("For: %v after %v", err, time.Since(start))
		}
		cause := errors.New("cause")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(cause) })
		start = time.Now()
		if err := For(ctx, time.Hour); !errors.Is(err, cause) || time.Since(start) != time.Minute {
			t.Errorf("interrupted: %v after %v", err, time.Since(start))
		}
	})
}
