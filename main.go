// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Command terraform-provider-agent is the plugin that Terraform and OpenTofu start.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	framework "github.com/hashicorp/terraform-plugin-framework/provider"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/plugin"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
)

// version is set by the release build.
var version = "dev"

// memoryLimit is soft: a process that needs more gets it, and spends up to half of its time on
// collecting.
const memoryLimit = 128 << 20

func main() {
	attach := flag.Bool("debug", false, "wait for a debugger, and print how to attach Terraform")
	flag.Parse()
	getenv := plugin.TakeEnvironment()

	// Go's default makes a plan of a thousand jobs a fifth slower: it collects whenever a small
	// heap has doubled. Without a limit, an apply that waits for a thousand jobs at once would
	// then take 300 MiB, twice as much as with it.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}

	// The CLI drives the shutdown. A signal to the whole process group, a console that
	// is closed, or a log that nobody reads any more must not end the plugin while a
	// response is due. Nobody reads the channel: Windows has no signal.Ignore.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)

	newProvider := func(process *cli.Process) framework.Provider {
		return provider.New(version, provider.Options{Process: process, Getenv: getenv})
	}
	err := provider.SilenceUnreadLog()
	if err == nil {
		err = plugin.Serve(context.Background(), provider.Address, newProvider, *attach)
	}
	if err != nil {
		log.SetOutput(os.Stderr) // it may be silenced
		log.Fatal(err)
	}
}
