// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package lives plays what a user and the service do to one job over several applies, at random, and asserts
// what must follow from any of them: nothing is sent again, nothing is lost, an apply is green only when its
// job is done, and there is a way out. With the race detector it takes four times as long.
package lives
