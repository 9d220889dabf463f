// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"regexp"
	"strings"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
)

// Key identifies equal requests by hashes, so that an entry does not reveal them. It is
// create-REQUEST, create-NAME-TRIGGERS or message-JOB-REQUEST.
type Key string

// CreateKey is the key of a create, of all that equal ones have in common.
func CreateKey(project, prompt, triggers string) Key {
	return Key("create-" + Hash(project, prompt, triggers))
}

// NamedCreateKey is the key of a create that has a name, whatever its prompt.
func NamedCreateKey(project, name, triggers string) Key {
	return Key("create-" + Hash("named", project, name) + "-" + Hash(triggers))
}

// MessageKey is the key of a message.
func MessageKey(project, job, prompt string) Key {
	return Key("message-" + Hash(project, job) + "-" + Hash(prompt))
}

// IsCreate reports whether the request starts a job.
func (k Key) IsCreate() bool { return strings.HasPrefix(string(k), "create-") }

// Family is how the names of all messages to one job start, those of all creates with one name, or
// those of equal creates.
func (k Key) Family() string {
	if parts := strings.Split(string(k), "-"); len(parts) > 2 {
		return parts[0] + "-" + parts[1]
	}
	return string(k)
}

// Hash returns 100 bits of a hash, as letters and digits.
func Hash(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		fixed := sha256.Sum256([]byte(part)) // of fixed width, so that "a", "bc" differs from "ab", "c"
		sum.Write(fixed[:])
	}
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum.Sum(nil)))[:20]
}

// Name is the name of an entry: KEY-RUN-ID.
type Name struct {
	Key Key
	Run cli.Run // that sent the request or took it over
	ID  string  // random, and never used again
}

// NewName returns a name that no other entry has or will have.
func NewName(key Key, run cli.Run) Name {
	return Name{Key: key, Run: run, ID: strings.ToLower(rand.Text())[:idLength]}
}

// ParseName reads a name; ok is false if it is not one of ours.
func ParseName(text string) (_ Name, ok bool) {
	parts := names.FindStringSubmatch(text)
	if parts == nil {
		return Name{}, false
	}
	return Name{Key: Key(parts[1]), Run: cli.Run(parts[2]), ID: parts[3]}, true
}

// ofFile reads the name of a file or object, which is an entry if ok. One with our suffix and an unknown name is an
// error: a later version wrote it, or a program that copies files, and who ignored it could send its request again.
func ofFile(file string) (name Name, ok bool, _ error) {
	text, ok := strings.CutSuffix(file, suffix)
	if !ok {
		return Name{}, false, nil
	}
	if name, ok = ParseName(text); !ok {
		return Name{}, false, fmt.Errorf("%q is no entry that this version of the provider can read: use the version that wrote it, "+
			"or delete it if no version did", file)
	}
	return name, true, nil
}

// String is the name of the entry's file or object, without a suffix.
func (n Name) String() string { return string(n.Key) + "-" + string(n.Run) + "-" + n.ID }

const idLength = 16

var names = regexp.MustCompile(`^((?:create-[a-z2-7]{20}|message-[a-z2-7]{20})(?:-[a-z2-7]{20})?)-([a-z0-9]{1,16})-([a-z2-7]{16})$`)

// ValidID reports whether an entry can have the id.
func ValidID(id string) bool {
	return len(id) == idLength && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}
