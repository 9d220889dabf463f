// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultserver

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"
)

// Play is the service's part in one exchange, after the request was read.
type Play func(*Exchange)

// Exchange is one request that was read whole, and waits for its answer.
type Exchange struct {
	request  *http.Request
	response http.ResponseWriter
	conn     net.Conn // if it was hijacked
	healthy  http.Handler
}

// takeOver returns the connection, which is closed after the play.
func (x *Exchange) takeOver() net.Conn {
	if x.conn == nil {
		x.conn, _, _ = http.NewResponseController(x.response).Hijack() // HTTP/1.1 allows it
	}
	return x.conn
}

func healthy(x *Exchange) { x.healthy.ServeHTTP(x.response, x.request) }

// Effect lets the request have its effect, and then plays the fault instead of
// the answer.
func Effect(then Play) Play {
	return func(x *Exchange) {
		x.healthy.ServeHTTP(httptest.NewRecorder(), x.request)
		then(x)
	}
}

// Reset ends the connection with RST instead of FIN; in memory the two are one.
func Reset(x *Exchange) {
	if tcp, ok := x.takeOver().(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

// EOF closes the connection without an answer.
func EOF(x *Exchange) { x.takeOver() }

// Raw sends exactly this and closes the connection.
func Raw(text string) Play {
	return func(x *Exchange) { _, _ = io.WriteString(x.takeOver(), text) }
}

// Answer sends a whole answer; headers are "Name: value" lines. A body is JSON
// unless they say otherwise.
func Answer(status int, body string, headers ...string) Play {
	return func(x *Exchange) {
		x.head(status, body, headers)
		_, _ = io.WriteString(x.response, body)
	}
}

// Slow sends the answer's body, one byte each interval, until the client has
// had enough.
func Slow(status int, body string, interval time.Duration) Play {
	return func(x *Exchange) {
		x.head(status, body, nil)
		flush := http.NewResponseController(x.response).Flush
		for i := 0; i < len(body) && flush() == nil; i++ {
			time.Sleep(interval)
			_, _ = io.WriteString(x.response, body[i:i+1])
		}
	}
}

func (x *Exchange) head(status int, body string, headers []string) {
	header := x.response.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		header.Set(name, value)
	}
	x.response.WriteHeader(status)
}
