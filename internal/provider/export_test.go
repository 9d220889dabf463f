// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"crypto/x509"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
)

// Roots are the authorities that the provider trusts with these certificates configured.
func Roots(pem string) *x509.CertPool {
	return providerModel{CACertificatesPEM: types.StringValue(pem)}.roots(new(diag.Diagnostics))
}

var (
	// Releasable is a context for one call, and what ends it.
	Releasable = releasable
	// SilenceUnreadLog turns loggers off when nobody has asked for a log.
	SilenceUnreadLog = silenceUnreadLog
)

// LogsExchanges reports whether HTTP exchanges are logged.
func LogsExchanges() bool { return exchangeLogger() != nil }

// NewPanicking returns a provider that panics with value at each poll of a wait
// or, with early, as soon as a call has read its arguments.
func NewPanicking(value string, early bool) provider.Provider {
	return &panicking{agentProvider: agentProvider{version: "test"}, value: value, early: early}
}

type panicking struct {
	agentProvider
	value string
	early bool
}

func (p *panicking) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	p.agentProvider.Configure(ctx, req, resp)
	if conn, ok := resp.ResourceData.(*connection); ok {
		conn.waiter.Poller = p
		if p.early {
			conn.mask = func(context.Context) context.Context { panic(p.value) }
		}
	}
}

func (p *panicking) PollJob(context.Context, string, string) (*agentapi.Job, error) { panic(p.value) }
