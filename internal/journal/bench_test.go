// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"fmt"
	"sync"
	"testing"
)

// BenchmarkAppend measures one synced entry when many calls note theirs at once.
func BenchmarkAppend(b *testing.B) {
	for _, callers := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			j := openQuiet(b, folder(b))
			file := countSyncs(b, j)
			key := CreateKey("benchmark")
			b.ReportAllocs()
			work := make(chan struct{})
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					call := j.Begin(b.Context(), key)
					for range work {
						_ = call.Sending()
					}
					call.End()
				})
			}
			for b.Loop() {
				work <- struct{}{}
			}
			close(work)
			all.Wait()
			b.ReportMetric(float64(file.syncs.Load())/float64(b.N), "syncs/op")
			j.Close()
		})
	}
}

// BenchmarkTake measures taking and settling one of many requests.
func BenchmarkTake(b *testing.B) {
	dir := folder(b)
	dead := openQuiet(b, dir)
	for i := range 100 {
		note(dead, CreateKey(fmt.Sprint(i)), "", fmt.Sprintf("job_%d", i))
	}
	crash(b, dead)
	j := openQuiet(b, dir)
	b.ReportAllocs()
	for b.Loop() {
		r, _ := take(b, j, CreateKey("1"))
		j.Return(r)
	}
	crash(b, j)
}
