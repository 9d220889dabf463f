// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import "fmt"

func (j *Journal) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Store: j.store.Place().Name, Op: op, Err: err, IsUnusable: j.Location.Unusable != nil}
}

// Error reports that a journal could not be used.
type Error struct {
	Store string // where the journal is kept
	Op    string // what was tried: "read", "listed", "written"
	Err   error

	IsUnusable bool // the settings that lead there cannot be used: trying again does not help
}

// Error says what failed, and in which store.
func (e *Error) Error() string {
	if e.Store == "" { // its settings do not lead to one
		return fmt.Sprintf("the journal could not be %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("the journal in %s could not be %s: %v", e.Store, e.Op, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
