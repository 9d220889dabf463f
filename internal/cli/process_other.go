// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !linux && !darwin && !windows

package cli

func bootID() string { return "" }

// startTime is unknown here: only the parent's id distinguishes runs, and no
// process is known to have ended.
func startTime(int) string { return "" }
