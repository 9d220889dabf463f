// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultserver

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"
)

// Exchange is one request that was read whole, and the connection that waits
// for its answer.
type Exchange struct {
	Request *http.Request

	conn    net.Conn // with TLS, if there is any
	raw     net.Conn
	healthy http.Handler
	over    bool
}

// Healthy gives the answer of the healthy handler.
func Healthy(x *Exchange) {
	recorder := httptest.NewRecorder()
	x.healthy.ServeHTTP(recorder, x.Request)
	answer := recorder.Result()
	answer.ContentLength = int64(recorder.Body.Len())
	x.over = answer.Write(x.conn) != nil
}

// Effect lets the request have its effect, and then plays the fault instead of
// the answer.
func Effect(then Play) Play {
	return func(x *Exchange) {
		x.healthy.ServeHTTP(httptest.NewRecorder(), x.Request)
		then(x)
	}
}

// Reset ends the connection with RST instead of FIN; in memory the two are one.
func Reset(x *Exchange) {
	x.over = true
	if tcp, ok := x.raw.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = x.raw.Close()
}

// EOF closes the connection without an answer.
func EOF(x *Exchange) { x.over = true }

// Raw sends exactly this and closes the connection.
func Raw(text string) Play {
	return func(x *Exchange) {
		x.over = true
		_, _ = io.WriteString(x.conn, text)
	}
}

// Answer sends a whole answer; headers are "Name: value" lines. A body is JSON
// unless they say otherwise.
func Answer(status int, body string, headers ...string) Play {
	return func(x *Exchange) {
		_, err := io.WriteString(x.conn, head(status, len(body), headers)+body)
		x.over = err != nil
	}
}

// Slow sends the answer's body, one byte each interval, until the client has
// had enough.
func Slow(status int, body string, interval time.Duration) Play {
	return func(x *Exchange) {
		x.over = true
		_, err := io.WriteString(x.conn, head(status, len(body), nil))
		for i := 0; i < len(body) && err == nil; i++ {
			time.Sleep(interval)
			_, err = io.WriteString(x.conn, body[i:i+1])
		}
	}
}

func head(status, length int, headers []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\nContent-Length: %d\r\n", status, http.StatusText(status), length)
	if !strings.Contains(strings.ToLower(strings.Join(headers, "\n")), "content-type:") {
		b.WriteString("Content-Type: application/json\r\n")
	}
	for _, line := range headers {
		b.WriteString(line + "\r\n")
	}
	return b.String() + "\r\n"
}
