// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Command simulator serves the simulated agent service on this machine. It
// prints the environment that points the provider at it.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

const help = `A prompt may say how its job proceeds, for example:
  "Add a quickstart [simulate: 30s, failed]"
Directives, separated by commas:
  30s                                      how long the job is active
  completed | failed | archived | active   how it finishes (active: never)
  no-pull-request                          it changes no files
  no-messages                              it refuses messages once it has finished
  stale=5s                                 how long the old record is shown after a message
A prompt with any other directive is refused with 400.

Faults and the record of requests, with the same key:
  curl -H "Authorization: Bearer $AGENT_ADMIN_KEY" $AGENT_BASE_URL/_simulator/requests
  curl … $AGENT_BASE_URL/_simulator/faults -d '{"kind": "create", "status": 503}'
A fault has kind (create, message, get; default: all), times, skip, delay ("5s"), afterEffect, drop, or status, body and
retryAfter.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal kills the process.
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "simulator:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("simulator", flag.ContinueOnError)
	flags.SetOutput(stderr)
	address := flags.String("listen", "127.0.0.1:8787", "loopback `address` to listen on; port 0 is any free one")
	key := flags.String("key", "", "the admin `key` accepted (default a random one)")
	duration := flags.Duration("duration", 2*time.Second, "how long a job is active unless its prompt says otherwise")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *key == "" {
		*key = "sim_" + strings.ToLower(rand.Text())
	}
	// The key travels unencrypted.
	if addr, err := net.ResolveTCPAddr("tcp", *address); err != nil || !addr.IP.IsLoopback() {
		return fmt.Errorf("-listen %s is not an address of this machine alone, such as 127.0.0.1:0", *address)
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", *address)
	if err != nil {
		return fmt.Errorf("%w; for a free port: go run ./internal/simulator/cmd/simulator -listen 127.0.0.1:0", err)
	}
	logger := log.New(stderr, "", log.LstdFlags)
	service := simulator.New(simulator.Options{
		Key:    *key,
		Script: func(string, int) simulator.Script { return simulator.Script{Duration: *duration} },
	})
	server := &http.Server{
		Handler:           logged(service, logger, *key),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          logger,
		// A delayed request ends with the command.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	fmt.Fprintf(stdout, "export AGENT_BASE_URL=http://%s\nexport AGENT_ADMIN_KEY=%s\nexport AGENT_PROJECT_ID=proj_demo\n", listener.Addr(), *key)
	fmt.Fprint(stderr, help)

	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		// Shutdown would wait for connections that a client has opened without using them.
		return server.Close()
	}
}

// logged writes a line for every request. The key is masked wherever a client
// may have put it.
func logged(next http.Handler, logger *log.Logger, key string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := &statusWriter{w, "no response"}
		// Deferred, because a dropped response is a panic.
		defer func() {
			line := fmt.Sprintf("%s %s %s %q", r.Method, r.URL.EscapedPath(), status.status, r.UserAgent())
			logger.Print(strings.ReplaceAll(line, key, "***"))
		}()
		next.ServeHTTP(status, r)
	})
}

// statusWriter remembers the status that was sent.
type statusWriter struct {
	http.ResponseWriter
	status string
}

func (w *statusWriter) WriteHeader(code int) {
	w.status = strconv.Itoa(code)
	w.ResponseWriter.WriteHeader(code)
}
