// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func noCanary(t testing.TB, what, text string) {
	t.Helper()
	if strings.Contains(text, canary[:8]) || strings.Contains(text, canary[5:11]) || strings.Contains(text, fmt.Sprintf("%x", canary[:8])) {
		t.Errorf("%s shows the key, or a part of it: %s", what, text)
	}
}

func TestKey_printed(t *testing.T) {
	t.Parallel()
	c := newClient(t, "https://service.invalid")
	config, failure := c.config, c.newError(apiCall{op: OpCreate}, ErrRefused, &response{status: 401}, nil)
	for _, value := range []any{
		config.Key, &config.Key, config, &config, reflect.ValueOf(c).Elem(), c, *failure, failure,
		map[string]any{"key": config.Key}, []Key{config.Key},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			noCanary(t, fmt.Sprintf("%T with %s", value, verb), fmt.Sprintf(verb, value))
		}
		text, _ := json.Marshal(value) // a Config has a function, which JSON refuses
		noCanary(t, fmt.Sprintf("%T as JSON", value), string(text))
	}
}

// A cut comes after the masking.
func TestKey_echoed(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 500) + canary
	const escaped = `\u006din\u0074_CANARY\u0037f3a9c`
	answer := func(status int, body string) string {
		return fmt.Sprintf("HTTP/1.1 %d \r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
	}
	for name, response := range map[string]string{
		"text, cut":   answer(400, long),
		"escaped":     answer(400, `{"error":"`+escaped+`"}`),
		"within text": answer(400, `{"error":"{\"key\":\"\`+escaped+`\"}"}`),
		"half a JSON": answer(400, `{"error":"`+escaped),
		"an id":       answer(201, `{"id":"`+escaped+`"}`),
		"error, 200":  answer(200, `{"error":"`+escaped+`"}`),
		"location":    "HTTP/1.1 302 \r\nLocation: https://x.invalid/?k=" + canary + "\r\n\r\n",
		"status line": "HTTP/1.1 " + canary + "\r\n\r\n",
		"quoted":      "HTTP/1.1 200 OK\r\n\"" + canary + "\\\r\n\r\n", // as net/http quotes what it cannot read
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var logged []map[string]any
			c := startServer(t, "", raw(response))
			if name == "quoted" {
				c.config.Key = NewKey(`"` + canary + `\`)
			}
			c.config.Log = func(_ context.Context, fields map[string]any) { logged = append(logged, fields) }
			_, err := c.CreateJob(t.Context(), "p", PostBody{Prompt: "x"}, new(recorder))
			if err == nil || len(logged) != 1 {
				t.Fatalf("%v and %d exchanges logged, want an error and 1", err, len(logged))
			}
			noCanary(t, "the log", fmt.Sprint(logged[0]))
			for ; err != nil; err = errors.Unwrap(err) {
				noCanary(t, "the error", fmt.Sprintf("%v %+v %#v", err, err, err))
			}
		})
	}
}

// A record goes into the state. JSON may spell each character of the key in three ways.
func TestKey_echoedInRecord(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ key, spelled, shown string }{
		"verbatim":  {canary, canary, masked},
		"8 letters": {"8letters", "8letters", masked},
		"7 letters": {"7letter", "7letter", "7letter"},
		"escaped":   {canary, `\u006d\u0069\u006e\u0074\u005F\u0043\u0041\u004e\u0041RY7f3a9c`, masked},
		"a slash":   {"mint/slash+1", `mint\/slash+1`, masked},
		"all kinds": {`a"b\c/d~e`, `\u0061\"b\\c\/\u0064\u007Ee`, masked},
		"twice":     {canary, canary + `-\u006d` + canary[1:], masked + "-" + masked},
		"no key":    {canary, `\\` + canary[1:], `\` + canary[1:]},
	} {
		job, err := decodeJob([]byte(`{"id":"job_1","source":{"ref":"agent/`+tc.spelled+`"}}`), NewKey(tc.key))
		if err != nil || *job.Source.Ref != "agent/"+tc.shown {
			t.Errorf("%s: %v, %v", name, job, err)
		}
	}
}
