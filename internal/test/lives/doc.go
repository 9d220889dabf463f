// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package lives plays what a user and the service do to one job over several applies, at random, and asserts
// what must follow from any of them: nothing is sent again, nothing is lost, an apply is green only when its
// job is done, and there is a way out. With the race detector it takes four times as long.
//
// A turn (turn_test.go) is one run of the CLI and what surrounds it, and a life is some turns. The player (player_test.go)
// plays a life up to the first turn that breaks the promise: check asserts, play does what the turn says.
package lives
