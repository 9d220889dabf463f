// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Command contract checks a live service against what the provider assumes about it,
// and prints a table in Markdown. It shares no code with the provider's client, so that
// a wrong name in one cannot hide behind the same mistake in the other.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"time"
)

const cost = `This starts two jobs of project %s at %s and sends each a message.
The service may charge for them, and none can be cancelled. The prompt asks the agent to change nothing.
A service that accepts what it should refuse may start two more jobs and accept two more messages.
`

const notChecked = `
Not checked: 402, 403, 408, 429 and 5xx; a response that does not arrive; a message to a failed or archived job;
whether the agent does what a message to an active job says.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		// A new connection for each request, without HTTP/2: else net/http may send a POST again.
		DisableKeepAlives: true,
		TLSNextProto:      map[string]func(string, *tls.Conn) http.RoundTripper{},
	})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "contract:", err)
		os.Exit(1)
	}
}

// run asks, checks and prints. The error is nil if every assumption holds.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, transport http.RoundTripper) error {
	flags := flag.NewFlagSet("contract", flag.ExitOnError)
	yes := flags.Bool("yes", false, "do not ask before starting the jobs")
	patience := flags.Duration("timeout", 30*time.Minute, "how long a job may take")
	_ = flags.Parse(args) // it exits
	k := kit{
		base: strings.TrimRight(os.Getenv("AGENT_BASE_URL"), "/"), project: os.Getenv("AGENT_PROJECT_ID"),
		key: os.Getenv("AGENT_ADMIN_KEY"), patience: *patience, progress: stderr,
		client: &http.Client{
			Transport: transport,
			Timeout:   2 * time.Minute,
			// A redirected request would carry the key elsewhere, and might be a second POST.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	service, err := url.Parse(k.base)
	if err != nil || service.Host == "" || k.key == "" || k.project == "" {
		return errors.New("set AGENT_BASE_URL (such as https://api.example.com), AGENT_ADMIN_KEY and AGENT_PROJECT_ID")
	}
	fmt.Fprintf(stderr, cost, k.project, service.Host)
	if !*yes {
		fmt.Fprint(stderr, "Type yes to continue: ")
		if answer, _ := bufio.NewReader(stdin).ReadString('\n'); strings.TrimSpace(answer) != "yes" {
			return errors.New("nothing was sent")
		}
	}

	err = k.check(ctx)
	date := time.Now().UTC().Format(time.DateOnly)
	fmt.Fprintf(stdout, "%s:\n\n| assumption | expected | seen | date |\n|---|---|---|---|\n", service.Host)
	broken := 0
	for _, r := range k.rows {
		if r.broken {
			broken++
			r.seen = "**no:** " + r.seen
		}
		fmt.Fprintf(stdout, "| %s | %s | %s | %s |\n", r.assumption, r.expected, strings.ReplaceAll(r.seen, "|", `\|`), date)
	}
	fmt.Fprint(stdout, notChecked)
	if err == nil && broken > 0 {
		err = fmt.Errorf("%d assumptions do not hold", broken)
	}
	return err
}
