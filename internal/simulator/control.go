// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator

import (
	"encoding/json"
	"net/http"
	"time"
)

// controlPrefix is where other processes inject faults and read the recorded
// requests. It requires the same key; its own requests are not recorded.
const controlPrefix = "/_simulator/"

// control answers GET requests (the record) and POST faults (a Fault as JSON,
// its Delay a text such as "1.5s").
func (s *Server) control(r *http.Request, path string) response {
	if !s.authorized(r.Header) {
		return unauthorized()
	}
	switch r.Method + " " + path {
	case "GET requests":
		return success(http.StatusOK, s.Requests())
	case "POST faults":
		var body struct {
			Fault
			Delay string // hides the one of Fault
		}
		decoder := json.NewDecoder(r.Body)
		decoder.DisallowUnknownFields() // a fault with a misspelt condition would hit everything
		err := decoder.Decode(&body)
		if err == nil && body.Delay != "" {
			body.Fault.Delay, err = time.ParseDuration(body.Delay)
		}
		if err != nil {
			return failure(http.StatusBadRequest, err.Error())
		}
		// net/http panics on fewer digits, and takes a 1xx for no response yet.
		if body.Status != 0 && (body.Status < 200 || body.Status > 599) {
			return failure(http.StatusBadRequest, "the status must be between 200 and 599")
		}
		s.Inject(body.Fault)
		return response{status: http.StatusNoContent}
	default:
		return failure(http.StatusNotFound, "not found")
	}
}
