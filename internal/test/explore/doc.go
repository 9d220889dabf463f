// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package explore plays every way to cut a run of the CLI short, and every way to cut
// short the run after it, and asserts after each what the provider promises.
//
// To read it, begin with the scenarios, which are lists of commands (scenarios_test.go), and with the ways to cut them
// (cut_test.go). A schedule (explore_test.go) is one cut for each run: the number of a step, and a way. After the cuts, a run
// that is not cut and a plan follow, and then check_test.go asserts the promise. A world (world_test.go) is what outlives a
// run: the service, the stored state, the journal, and processes whose CLI was killed. Worlds that the next run cannot tell
// apart are continued once.
//
// A run (run_test.go) plans and applies as real CLIs do: a replaced job is planned twice, an apply plans again with private
// data of the state only, and reads no object that it does not change. Each run has a machine of its own, so it waits for the
// claims of others. With the race detector it takes four times as long.
package explore
