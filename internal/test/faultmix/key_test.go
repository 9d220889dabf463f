// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultmix

import (
	"bytes"
	"sync"
)

// keyWatch searches for the key in all that is written to it, and keeps nothing.
type keyWatch struct {
	mu       sync.Mutex
	rest     []byte
	found    int
	where    string
	complete bool // the log of the client was seen
}

// keyPart is enough of the key to be its beginning and nothing else.
const keyPart = "mint_canary-"

func (k *keyWatch) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.complete = k.complete || bytes.Contains(p, []byte("called the agent service"))
	k.rest = append(k.rest, p...)
	if n := bytes.Count(k.rest, []byte(keyPart)); n > 0 {
		if k.found == 0 {
			at := bytes.Index(k.rest, []byte(keyPart))
			k.where = string(k.rest[max(0, at-200):min(len(k.rest), at+len(keyPart))])
		}
		k.found += n
		k.rest = nil
	}
	k.rest = append(k.rest[:0], k.rest[max(0, len(k.rest)-len(keyPart)+1):]...)
	return len(p), nil
}
