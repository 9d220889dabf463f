// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package lives plays random lives of one agent_job: what a user, a service and a network
// do to it over several runs. After each turn it compares what was sent, and whether the
// run failed, with a reference model: the tables of docs/guides/lifecycle.md and
// reliability.md as code, from the user's view. A life that differs is shrunk.
package lives
