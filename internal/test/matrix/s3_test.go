// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"net/http"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
)

// fakeS3 is the bucket of a row.
type fakeS3 struct{ *fakes3.Server }

// bucket keeps the journal in a fake bucket.
func (m *Matrix) bucket() *fakeS3 {
	f := &fakeS3{fakes3.New(m)}
	m.config["journal"] = attrs{"url": f.URL}
	return f
}

// fail lets requests fail from now on; nil: none.
func (f *fakeS3) fail(fault func(r *http.Request) (status int)) {
	if fault == nil {
		f.SetHook(nil)
		return
	}
	f.SetHook(func(r *http.Request, _ func()) int { return fault(r) })
}

// status is what a request of a method fails with; an empty method is any.
func status(method string, code int) func(r *http.Request) int {
	return func(r *http.Request) int {
		if method == "" || r.Method == method {
			return code
		}
		return 0
	}
}

// runAhead sets the store's clock.
func (f *fakeS3) runAhead(d time.Duration) {
	f.Lock()
	defer f.Unlock()
	f.Ahead = d
}

// age makes all objects older.
func (f *fakeS3) age(d time.Duration) {
	f.Lock()
	defer f.Unlock()
	for _, o := range f.Objects {
		o.Modified = o.Modified.Add(-d)
	}
}

// entries are the texts of all objects.
func (f *fakeS3) entries() (texts []string) {
	f.Lock()
	defer f.Unlock()
	for _, o := range f.Objects {
		texts = append(texts, string(o.Text))
	}
	return texts
}
