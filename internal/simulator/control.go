// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// controlPrefix is where the simulator itself is asked and steered, for those
// who do not share its process. It takes the same key and is not recorded.
const controlPrefix = "/_simulator/"

// serveControl answers below controlPrefix: GET requests, counts and jobs,
// POST faults, reset (empties record and fault queue) and jobs/{id}/status,
// DELETE jobs/{id}.
func (s *Server) serveControl(w http.ResponseWriter, r *http.Request, path string) {
	a := unauthorized()
	if s.authorized(r.Header) {
		a = s.control(r, path)
	}
	a.write(r.Context(), w, Fault{})
}

func (s *Server) control(r *http.Request, path string) answer {
	switch r.Method + " " + path {
	case "GET requests":
		return success(http.StatusOK, s.Requests())
	case "GET counts":
		return success(http.StatusOK, s.Counts())
	case "GET jobs":
		return success(http.StatusOK, s.Jobs())
	case "POST faults":
		var f Fault
		if err := decode(r, &f); err != nil {
			return failure(http.StatusBadRequest, err.Error())
		}
		s.Inject(f)
		return answer{status: http.StatusNoContent}
	case "POST reset":
		s.ResetRequests()
		s.ClearFaults()
		return answer{status: http.StatusNoContent}
	}
	id, ok := strings.CutPrefix(path, "jobs/")
	if !ok {
		return failure(http.StatusNotFound, "not found")
	}
	if id, ok := strings.CutSuffix(id, "/status"); ok && r.Method == http.MethodPost {
		return s.controlStatus(r, id)
	}
	if r.Method == http.MethodDelete && s.Forget(id) {
		return answer{status: http.StatusNoContent}
	}
	return notFound()
}

func (s *Server) controlStatus(r *http.Request, id string) answer {
	var body struct {
		Status string `json:"status"`
	}
	err := decode(r, &body)
	if err == nil && body.Status == "" {
		err = errors.New("status is required")
	}
	if err != nil {
		return failure(http.StatusBadRequest, err.Error())
	}
	if !s.SetStatus(id, body.Status) {
		return notFound()
	}
	return answer{status: http.StatusNoContent}
}

func decode(r *http.Request, value any) error {
	data, err := readBody(r)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, value)
}

// plainFault is Fault without its methods; faultJSON lays durations as texts over it.
type plainFault Fault

type faultJSON struct {
	*plainFault
	Delay duration `json:"delay,omitzero"`
	Slow  duration `json:"slow,omitzero"`
}

// UnmarshalJSON reads durations as texts such as "1.5s". It refuses unknown
// fields: a fault with a misspelt condition would hit everything.
func (f *Fault) UnmarshalJSON(data []byte) error {
	*f = Fault{}
	wire := faultJSON{plainFault: (*plainFault)(f)}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&wire); err != nil {
		return err
	}
	f.Delay, f.Slow = time.Duration(wire.Delay), time.Duration(wire.Slow)
	switch f.Kind {
	case "", KindCreate, KindMessage, KindGet, KindOther:
	default:
		return fmt.Errorf("unknown kind %q", f.Kind)
	}
	// net/http panics on fewer digits, and takes a 1xx for no answer yet.
	if f.Status != 0 && (f.Status < 200 || f.Status > 599) {
		return fmt.Errorf("status %d is not between 200 and 599", f.Status)
	}
	return nil
}

// MarshalJSON writes what UnmarshalJSON reads.
func (f Fault) MarshalJSON() ([]byte, error) {
	return json.Marshal(faultJSON{
		plainFault: (*plainFault)(&f),
		Delay:      duration(f.Delay),
		Slow:       duration(f.Slow),
	})
}

// duration is a time.Duration as a text in JSON.
type duration time.Duration

func (d *duration) UnmarshalText(text []byte) error {
	value, err := time.ParseDuration(string(text))
	*d = duration(value)
	return err
}

func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }
