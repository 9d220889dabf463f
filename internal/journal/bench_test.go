// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// BenchmarkPost is the journal's share of a POST, in a folder.
func BenchmarkPost(b *testing.B) {
	for _, callers := range []int{1, 1000} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			j, err := NewProcess(onRun("run"), func(err error) { b.Error(err) }).Open(Options{Location: Location{Folder: b.TempDir()}, RequestTimeout: time.Second})
			if err != nil {
				b.Fatal(err)
			}
			var group errgroup.Group
			group.SetLimit(callers)
			for i := range b.N {
				group.Go(func() error {
					c := j.Begin(b.Context(), Request{Key: CreateKey(fmt.Sprint(i))})
					defer c.End()
					defer c.Answered("job")
					return c.Sending()
				})
			}
			if err := group.Wait(); err != nil {
				b.Error(err)
			}
		})
	}
}
