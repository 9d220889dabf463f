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
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

const help = `A prompt may say how its job goes on, for example:
  "Add a quickstart [simulate: 30s, failed]"
Directives, separated by commas:
  30s                                      how long the job is active
  completed | failed | archived | active   how it ends (active: never)
  no-pull-request                          it changes no files
  stale=5s                                 after a message: the old record is shown for so long
A prompt with any other directive is refused with 400.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process the hard way.
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "simulator:", err)
	if errors.Is(err, errUsage) {
		os.Exit(2)
	}
	os.Exit(1)
}

// errUsage is what every error about the command line is.
var errUsage = errors.New("usage")

// Both need no quoting in a shell; a key is what a bearer token may be, a
// project one segment of a path.
var (
	legalKey     = regexp.MustCompile(`^[A-Za-z0-9._~+/=-]+$`)
	legalProject = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
)

// config is the command line.
type config struct {
	listen, key, project string
	allowRemote          bool
	limit                int
	limitPer, duration   time.Duration
}

func parse(args []string, stderr io.Writer) (config, error) {
	var c config
	flags := flag.NewFlagSet("simulator", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&c.listen, "listen", "127.0.0.1:8787", "`address` to listen on; port 0 is any free one")
	flags.BoolVar(&c.allowRemote, "allow-remote", false, "allow an address that other machines reach (the key travels unencrypted)")
	flags.StringVar(&c.key, "key", "", "the admin `key` accepted (default: a random one, which is printed)")
	flags.StringVar(&c.project, "project", "proj_demo", "the `id` printed as AGENT_PROJECT_ID; every project is served")
	flags.IntVar(&c.limit, "limit", 0, "how many creates and messages a project may send per window; 0 is no limit")
	flags.DurationVar(&c.limitPer, "limit-per", time.Hour, "how long the window of -limit is")
	flags.DurationVar(&c.duration, "duration", 2*time.Second, "how long a job is active unless its prompt says otherwise")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return c, err
		}
		return c, fmt.Errorf("%w: %w", errUsage, err)
	}
	if c.key == "" {
		c.key = "sim_" + strings.ToLower(rand.Text())
	}
	switch {
	case flags.NArg() > 0:
		return c, fmt.Errorf("%w: unexpected argument %q", errUsage, flags.Arg(0))
	case !legalKey.MatchString(c.key):
		return c, fmt.Errorf("%w: -key may only have letters, digits and ._~+/=-", errUsage)
	case !legalProject.MatchString(c.project):
		return c, fmt.Errorf("%w: -project may only have letters, digits, _ and -", errUsage)
	case c.limit < 0 || c.limitPer <= 0 || c.duration < 0:
		return c, fmt.Errorf("%w: -limit and -duration must not be negative, -limit-per must be positive", errUsage)
	}
	return c, nil
}

// listen binds the address, which must be loopback unless remote ones are allowed.
func listen(ctx context.Context, c config) (net.Listener, error) {
	addr, err := net.ResolveTCPAddr("tcp", c.listen)
	if err != nil {
		return nil, fmt.Errorf("%w: -listen: %w", errUsage, err)
	}
	if !c.allowRemote && !addr.IP.IsLoopback() {
		return nil, fmt.Errorf("%w: -listen %s can be reached from other machines; add -allow-remote if that is meant", errUsage, c.listen)
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", addr.String())
	if err != nil {
		return nil, fmt.Errorf("%w; for a free port: go run ./internal/simulator/cmd/simulator -listen 127.0.0.1:0", err)
	}
	return listener, nil
}

// baseURL returns the URL under which this machine reaches the listener.
func baseURL(l net.Listener) string {
	host, port, _ := net.SplitHostPort(l.Addr().String())
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// run serves until ctx ends, then lets running requests finish for a moment.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c, err := parse(args, stderr)
	if err != nil {
		return err
	}
	listener, err := listen(ctx, c)
	if err != nil {
		return err
	}
	options := simulator.Options{
		Key:    c.key,
		Script: func(string, int) simulator.Script { return simulator.Script{Duration: c.duration} },
	}
	if c.limit > 0 {
		options.Limit = &simulator.Limit{Uses: c.limit, Per: c.limitPer, RetryAfter: true}
	}
	logger := log.New(stderr, "", log.LstdFlags)
	server := &http.Server{
		Handler:           logged(simulator.New(options), logger, c.key),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          logger,
		// A delayed request ends with the command.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}

	fmt.Fprintf(stdout, "export AGENT_BASE_URL=%s\nexport AGENT_ADMIN_KEY=%s\nexport AGENT_PROJECT_ID=%s\n",
		baseURL(listener), c.key, c.project)
	fmt.Fprint(stderr, help)

	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	// Shutdown would wait for connections that a client has opened to no use.
	return server.Close()
}

// logged writes a line for every request. The key is masked wherever a client
// may have put it in the path.
func logged(next http.Handler, logger *log.Logger, key string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := &statusWriter{ResponseWriter: w}
		// Deferred, because a dropped answer is a panic.
		defer func() {
			outcome := "no answer"
			if status.code != 0 {
				outcome = strconv.Itoa(status.code)
			}
			logger.Printf("%s %s %s", r.Method, strings.ReplaceAll(r.URL.EscapedPath(), key, "***"), outcome)
		}()
		next.ServeHTTP(status, r)
	})
}

// statusWriter remembers the status that was sent.
type statusWriter struct {
	http.ResponseWriter
	code int
}

func (w *statusWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
