// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package lives plays what a user and the service do to one job over several applies, beside a
// model that reads like the tables of the lifecycle guide. With the race detector it takes four
// times as long.
package lives
