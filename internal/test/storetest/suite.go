// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
)

// Place is where a store is tried: a bucket, or a folder.
type Place struct {
	Cloud   bucket.Cloud // nil: it is a folder
	Prefix  string       // in the bucket
	Folder  string
	Open    func(scope string, network http.RoundTripper) store.Store // there; see bucket.New
	Missing store.Store                                               // has no bucket, or no folder

	Page       int                                              // names in a page of a listing
	Deny       func(t *testing.T, scope, op string) store.Store // without a right
	CannotDeny string                                           // why there is no Deny
	Forget     func(t *testing.T, scope, key string)            // deletes what a key has, as only a person does; nil where no test can

	scope string // of a test
}

// OddPrefix has what may stand in the key of a state, and is special in some URL, pattern or signature.
const OddPrefix = "a b+c%20/ü#?:@$,;!&=~'(1)[x]/"

// Run tries all that the journal demands of a store. What only one store does has tests beside that store.
func Run(t *testing.T, p Place) {
	t.Helper()
	for name, try := range map[string]func(*testing.T, Place){
		"conditions":    tryConditions,
		"race":          tryRace,
		"lost and late": tryLostAndLate,
		"list":          tryList,
		"texts":         tryTexts,
		"denied":        tryDenied,
		"missing":       tryMissing,
		"silent":        trySilent,
		"foreign":       tryForeign,
	} {
		t.Run(name, func(t *testing.T) {
			p := p
			p.scope = NewKey()
			try(t, p)
		})
	}
}

func (p Place) open() store.Store { return p.Open(p.scope, nil) }

// putFile stores what the journal does not.
func (p Place) putFile(t *testing.T, file, text string) {
	t.Helper()
	if p.Cloud == nil {
		path := filepath.Join(p.Folder, filepath.FromSlash(file))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		return
	}
	objects, err := p.Cloud.Connect(t.Context(), nil)
	if err == nil {
		_, err = objects.Put(t.Context(), p.Prefix+file, []byte(text), "")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A write replaces the version that it names, and no other. A version is the same in a write and a read.
func tryConditions(t *testing.T, p Place) {
	s, key := p.open(), NewKey()
	refused := func(what string, over store.Text) {
		t.Helper()
		if written, err := s.Put(t.Context(), over, []byte(`"refused"`)); !errors.Is(err, store.ErrConflict) || written.Exists() {
			t.Errorf("%s: %+v, %v", what, written, err)
		}
	}
	nothing, foreign := Want(t, s, key, ""), New(NewKey())
	for range 3 { // another key has had more texts
		foreign = Write(t, s, foreign, NewKey())
	}
	foreign.Key = key
	refused("change of nothing", foreign)
	first := Write(t, s, nothing, `"first"`)
	refused("second of two new ones", nothing)
	refused("change of what was never there", foreign)
	refused("version of another kind of store", store.Text{Key: key, Version: `"another"`})
	second := Write(t, s, first, `"second"`)
	refused("change of an old version", first)
	refused("new one over a changed one", nothing)
	third := Write(t, s, Want(t, s, key, `"second"`), `"third"`)
	if got := Want(t, s, key, `"third"`); got.Version != third.Version || third.Version == second.Version {
		t.Errorf("written as %s, read as %s", third.Version, got.Version)
	}
	if p.Forget == nil {
		return
	}
	p.Forget(t, p.scope, key)
	Want(t, s, key, "")
	refused("change of what was deleted", third)
	Write(t, s, nothing, `"fourth"`)
	Want(t, s, key, `"fourth"`)
}

// Any number of processes may prove conditions at once. Of the writers that have read the same version, one wins.
func tryRace(t *testing.T, p Place) {
	var proofs errgroup.Group
	for range 6 {
		proofs.Go(func() error { return p.open().Prove(t.Context()) })
	}
	if err := proofs.Wait(); err != nil {
		t.Error(err)
	}
	key := NewKey()
	current := New(key)
	for round := range 50 {
		texts, written, errs := make([]string, 6), make([]store.Text, 6), make([]error, 6)
		var writers sync.WaitGroup
		for i := range texts {
			texts[i] = fmt.Sprintf(`"round %d, writer %d"`, round, i)
			s := p.open()
			writers.Go(func() { written[i], errs[i] = s.Put(t.Context(), current, []byte(texts[i])) })
		}
		writers.Wait()
		winner := slices.Index(errs, nil)
		if winner < 0 {
			t.Fatalf("round %d: nobody wins: %v", round, errs)
		}
		for i, err := range errs {
			if i != winner && !errors.Is(err, store.ErrConflict) {
				t.Fatalf("round %d: %d wins, and %d: %v", round, winner, i, err)
			}
		}
		if current = Want(t, p.open(), key, texts[winner]); current.Version != written[winner].Version {
			t.Fatalf("round %d: written as %s, read as %s", round, written[winner].Version, current.Version)
		}
	}
}

var errLost = errors.New("the response is lost")

// A write whose response is lost is no success, and shows in a read. One that arrives after a newer one changes nothing.
func tryLostAndLate(t *testing.T, p Place) {
	if p.Cloud == nil {
		t.Skip("nothing is on its way to a folder, or from there")
	}
	s, key := p.open(), NewKey()
	for range 2 { // a new text, and a change
		before, err := s.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		held := make(chan *http.Request, 1)
		ctx, cancel := context.WithCancel(t.Context())
		holds := p.Open(p.scope, Network(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			late := r.Clone(context.WithoutCancel(r.Context()))
			late.Body = io.NopCloser(bytes.NewReader(body))
			select {
			case held <- late:
			default:
				t.Error("sent again, after its context was cancelled")
			}
			cancel()
			return nil, errors.Join(err, ctx.Err())
		}))
		if _, err = holds.Put(ctx, before, []byte(`"late"`)); len(held) == 0 || err == nil || errors.Is(err, store.ErrConflict) {
			t.Fatalf("no response, and %v", err)
		}
		isFirst := true
		loses := p.Open(p.scope, Network(func(r *http.Request) (*http.Response, error) {
			response, err := http.DefaultTransport.RoundTrip(r)
			if err == nil && isFirst {
				isFirst = false
				return nil, errors.Join(errLost, response.Body.Close())
			}
			return response, err
		}))
		newer := fmt.Sprintf("%q", "after "+before.Version)
		if _, err = loses.Put(t.Context(), before, []byte(newer)); !errors.Is(err, store.ErrConflict) && !errors.Is(err, errLost) {
			t.Errorf("a lost response is %v", err)
		}
		Want(t, s, key, newer)
		response, err := http.DefaultTransport.RoundTrip(<-held)
		if err != nil {
			t.Fatal(err)
		}
		if _ = response.Body.Close(); response.StatusCode != http.StatusPreconditionFailed && response.StatusCode != http.StatusConflict {
			t.Errorf("late write after %q: status %d", before.Version, response.StatusCode)
		}
		Want(t, s, key, newer)
	}
}

// A listing has all pages, and only the keys of its scope.
func tryList(t *testing.T, p Place) {
	s := p.open()
	if found, err := s.List(t.Context()); len(found) > 0 || err != nil {
		t.Errorf("a new scope: %v, %v", found, err)
	}
	var want []string
	var writes errgroup.Group
	writes.SetLimit(16)
	for range p.Page + 2 {
		key := NewKey()
		want = append(want, key)
		writes.Go(func() error { _, err := s.Put(t.Context(), New(key), []byte(key)); return err })
	}
	if err := errors.Join(writes.Wait(), s.Prove(t.Context())); err != nil {
		t.Fatal(err)
	}
	other := NewKey() + store.Suffix
	for _, file := range []string{
		p.scope + "/note.txt", p.scope + "/deeper/" + other, p.scope + "/Upper" + store.Suffix, p.scope + "/" + strings.Repeat("k", 63) + store.Suffix,
		p.scope + "2/" + other, other,
	} {
		p.putFile(t, file, "{}")
	}
	found, err := s.List(t.Context())
	slices.Sort(found)
	slices.Sort(want)
	if diff := cmp.Diff(want, found); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// A text is what was written, whatever it is, and never a part of it. What is no key becomes no part of a path.
func tryTexts(t *testing.T, p Place) {
	s := p.open()
	for _, key := range []string{"", "a/b", "..", "A", strings.Repeat("k", 63)} {
		_, readErr := s.Get(t.Context(), key)
		if _, err := s.Put(t.Context(), New(key), nil); err == nil || readErr == nil {
			t.Errorf("%q is a key: %v, %v", key, readErr, err)
		}
	}
	Write(t, s, New(NewKey()+"-"+strings.Repeat("k", 62-27)), "{}")
	for _, body := range []string{"{", "\x00\xff\r\n", strings.Repeat("x", store.MaxText)} {
		key := NewKey()
		Write(t, s, New(key), body)
		Want(t, s, key, body)
	}
	empty := Write(t, s, New(NewKey()), "")
	if got, err := s.Get(t.Context(), empty.Key); len(got.Body) > 0 || got.Version != empty.Version || err != nil {
		t.Errorf("an empty text: %+v, %v", got, err)
	}
	long, key := strings.Repeat("x", store.MaxText+1), NewKey()
	if _, err := s.Put(t.Context(), New(NewKey()), []byte(long)); err == nil {
		t.Error("wrote a text that is too long")
	}
	p.putFile(t, p.scope+"/"+key+map[bool]string{true: "/1"}[p.Cloud == nil]+store.Suffix, long)
	if got, err := s.Get(t.Context(), key); len(got.Body) > 0 || got.Exists() || err == nil {
		t.Errorf("read %d bytes of a text that is too long, version %q, %v", len(got.Body), got.Version, err)
	}
}

// An error says which right is missing, and the other rights suffice for the rest. Each policy is made of what such errors say.
func tryDenied(t *testing.T, p Place) {
	if p.Deny == nil {
		t.Skip("nothing is denied here: " + p.CannotDeny)
	}
	key := NewKey()
	Write(t, p.open(), New(key), "{}")
	for _, denied := range []string{"", "list", "read", "write"} {
		t.Run("without "+denied, func(t *testing.T) {
			s := p.Deny(t, p.scope, denied)
			for op, err := range Ops(t, s, key) {
				needs := strings.Replace(op, "prove", "write", 1)
				grant := p.Cloud.Grant(needs, p.Prefix)
				isDenied := needs == denied || op == "prove" && denied == "read"
				if (err != nil) != isDenied || errors.Is(err, store.ErrDenied) != (err != nil) || err != nil && !strings.Contains(err.Error(), grant) {
					t.Errorf("%s: %v; want %s only if denied", op, err, grant)
				}
			}
		})
	}
}

// Only a bucket or folder that exists can say that there is nothing.
func tryMissing(t *testing.T, p Place) {
	for op, err := range Ops(t, p.Missing, NewKey()) {
		if err == nil || errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: %v", op, err)
		}
	}
}

// A call ends with its context, whatever the store does.
func trySilent(t *testing.T, p Place) {
	if p.Cloud == nil {
		t.Skip("the system does not interrupt a call to a file system that hangs")
	}
	synctest.Test(t, func(t *testing.T) {
		s := p.Open(p.scope, Network(func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() }))
		start := time.Now()
		for op, err := range Ops(t, s, NewKey()) {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", op, err)
			}
		}
		if took := time.Since(start); took != 4*Limit {
			t.Errorf("four calls took %s, want %s each", took, Limit)
		}
	})
}

func tryForeign(t *testing.T, p Place) {
	if p.Cloud == nil {
		t.Skip("nothing responds for a folder")
	}
	Foreign(t, func(n Network) store.Store { return p.Open(p.scope, n) })
}

// Foreign tries responses of a proxy: only the store's own words say that there is nothing, or that a condition is not met. No
// redirect is followed.
func Foreign(t *testing.T, open func(Network) store.Store) {
	t.Helper()
	for _, status := range []int{http.StatusOK, http.StatusTemporaryRedirect, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound} {
		synctest.Test(t, func(t *testing.T) {
			s := open(func(r *http.Request) (*http.Response, error) {
				if r.URL.Host == "foreign.example.com" {
					t.Errorf("%d: followed with %v", status, r.Header)
				}
				return Response(status, "", "Location", "https://foreign.example.com"), nil
			})
			for op, err := range Ops(t, s, NewKey()) {
				if err == nil || errors.Is(err, store.ErrConflict) {
					t.Errorf("%d is good enough for %s: %v", status, op, err)
				}
			}
		})
	}
}

// Stalled tries a store whose credentials are lent for an hour: a refresh without a response does not hold up the next access. lent
// responds to a request for credentials, and to no other.
func Stalled(t *testing.T, open func(*testing.T, Network) store.Store, lent func(*http.Request) *http.Response) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var stalls atomic.Bool
		s := open(t, func(r *http.Request) (*http.Response, error) {
			response := lent(r)
			switch {
			case response == nil:
				return Response(http.StatusOK, `{"generation": "1"}`, "ETag", `"1"`), nil
			case stalls.CompareAndSwap(true, false):
				<-r.Context().Done() // not that of the access
				return nil, r.Context().Err()
			}
			return response, nil
		})
		for _, want := range []error{nil, context.DeadlineExceeded, nil} {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := s.Put(ctx, New(NewKey()), []byte("{}")); !errors.Is(err, want) || time.Since(began) > time.Second {
				t.Errorf("got %v after %v, want %v", err, time.Since(began), want)
			}
			cancel()
			if want == nil { // what was lent ends
				<-time.After(2 * time.Hour)
				stalls.Store(true)
			}
		}
	})
}
