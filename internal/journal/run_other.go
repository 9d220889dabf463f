// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !linux && !darwin && !windows

package journal

func bootID() string { return "" }

// startTime is unknown here: only the parent's id distinguishes runs, and
// the end of another process is never known.
func startTime(int) string { return "" }
