// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Command steps is the provider's main with a report of each step, which returns
// when the test lets the provider continue.
package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/agentjobs/terraform-provider-agent/internal/plugin"
)

func main() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	report := func(step string) {
		if response, err := http.Post(os.Getenv("CHAOS_STEPS")+step, "", nil); err == nil {
			_ = response.Body.Close()
		}
	}
	//nolint:forbidigo // This is a main: there is no caller.
	err := plugin.Serve(context.Background(), "0.0.1", plugin.Options{Recording: func(write func() error) error {
		report("/step/write")
		defer report("/step/written")
		return write()
	}})
	report("/step/served")
	if err != nil {
		log.Fatal(err)
	}
}
