// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"encoding/json"
	"slices"
	"strings"
)

// What a command says of earlier runs. Only with -json does a CLI show each of
// several warnings that have the same summary.
const (
	createAnnounced  = "Agent job of an earlier run will be taken over"
	messageAnnounced = "Message of an earlier run will be taken over"
	unknownAnnounced = "Outcome of an earlier request unknown"
	createTakenOver  = "Agent job of an earlier run taken over"
	messageTakenOver = "Message of an earlier run found"
	createUnknown    = "Outcome of an earlier create unknown"
	messageUnknown   = "Outcome of message to agent job unknown"
)

// details are those of the diagnostics that have one of the summaries.
func details(output string, summaries ...string) (found []string) {
	for line := range strings.Lines(output) {
		var message struct {
			Diagnostic struct{ Summary, Detail string }
		}
		if json.Unmarshal([]byte(line), &message) == nil && slices.Contains(summaries, message.Diagnostic.Summary) {
			found = append(found, message.Diagnostic.Detail)
		}
	}
	return found
}

func count(output string, summaries ...string) int { return len(details(output, summaries...)) }
