// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
)

type fakeS3 struct {
	*fakes3.Server
	location Location
}

func newFakeS3(t *testing.T) *fakeS3 {
	t.Helper()
	server := fakes3.New(t)
	l, err := ParseURL(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return &fakeS3{server, l}
}
