// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"io"
	"log"
	"os"
	"testing"
)

// What nobody reads is not written, and what somebody asks for is.
func TestLogLevels(t *testing.T) {
	defer log.SetOutput(log.Writer())
	for _, test := range []struct {
		variable, value string // beside TF_LOG=off
		silenced        bool
	}{
		{"TF_LOG", "", true},
		{"TF_LOG", "OFF", true},
		{"TF_LOG_CORE", "trace", true},
		{"TF_LOG", "debug", false},
		{"TF_LOG_PROVIDER", "info", false},
		{"TF_LOG_PROVIDER_AGENT", "info", false},
		{"TF_LOG_SDK_PROTO", "trace", false},
	} {
		for _, name := range []string{"TF_LOG_CORE", "TF_LOG_PROVIDER", "TF_LOG_PROVIDER_AGENT", "TF_LOG_SDK", "TF_LOG_SDK_PROTO"} {
			t.Setenv(name, "") // restores it in the end
			_ = os.Unsetenv(name)
		}
		log.SetOutput(os.Stderr)
		t.Setenv("TF_LOG", "off")
		t.Setenv(test.variable, test.value)
		if err := SilenceUnreadLog(); err != nil {
			t.Fatal(err)
		}
		isOff := os.Getenv("TF_LOG_PROVIDER_AGENT") == "off" // and the SDK, and what libraries log
		if got := [3]bool{isOff, os.Getenv("TF_LOG_SDK") == "off", log.Writer() == io.Discard}; got != [3]bool{test.silenced, test.silenced, test.silenced} {
			t.Errorf("%s=%s: silenced are %t", test.variable, test.value, got)
		}
	}
}
