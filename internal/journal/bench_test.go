// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// BenchmarkPost is the journal's share of a POST, in a folder.
func BenchmarkPost(b *testing.B) {
	for _, callers := range []int{1, 1000} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			j, err := NewProcess("run", func(err error) { b.Error(err) }).Open(Options{Location: Location{Folder: b.TempDir()}, RequestTimeout: time.Second})
			if err != nil {
				b.Fatal(err)
			}
			var wg sync.WaitGroup
			turns := make(chan int)
			for range callers {
				wg.Go(func() {
					for i := range turns {
						c := j.Begin(b.Context(), CreateKey(fmt.Sprint(i)), "")
						if err := c.Sending(); err != nil {
							b.Error(err)
						}
						c.Answered("job")
						c.End()
					}
				})
			}
			for i := range b.N {
				turns <- i
			}
			close(turns)
			wg.Wait()
		})
	}
}
