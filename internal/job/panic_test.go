// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	frameworkprovider "github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-log/tflogtest"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/job"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// panicking is a provider that panics with value at each poll of a wait or, with
// early, as soon as a call has read its arguments.
type panicking struct {
	agent
	value string
	early bool
}

// agent has all that plugin.NewServer needs.
type agent interface {
	frameworkprovider.ProviderWithActions
	StateRead(resourceType string, object []byte)
}

func newPanicking(early bool) frameworkprovider.Provider {
	return &panicking{provider.New("test", provider.Options{}).(agent), "with " + harness.CanaryKey, early}
}

func (p *panicking) Configure(ctx context.Context, req frameworkprovider.ConfigureRequest, resp *frameworkprovider.ConfigureResponse) {
	p.agent.Configure(ctx, req, resp)
	if data, ok := resp.ResourceData.(*job.ProviderData); ok {
		data.Waiter.Poller = p
		if p.early {
			data.Mask = func(context.Context) context.Context { panic(p.value) }
		}
	}
}

func (p *panicking) PollJob(context.Context, string, string) (*agentapi.Job, error) { panic(p.value) }

// Red without: recovered in Create and Update.
func TestX06_panic_after_an_accepted_POST(t *testing.T) {
	s := harness.NewService(t, harness.Always(simulator.Script{Duration: 100 * time.Millisecond}))
	c := fakecli.New(t, s.Attrs())
	c.ConnectTo(t.Context(), newPanicking(false), s.Attrs())

	var log bytes.Buffer
	created := fakecli.Text(c.Run(tflogtest.RootLogger(t.Context(), &log), attrs{"prompt": "write"}))
	harness.Contains(t, created, "WARNING: Internal error in the agent provider", s.OnlyJob(t).ID)
	harness.Contains(t, log.String(), `"@level":"error"`, "PollJob")
	harness.Contains(t, created, "The error: string, in job_test.(*panicking).PollJob:", ", wait.Waiter.Wait:", ", job.(*ProviderData).await:")
	if c.Tainted || c.Get("id") != s.OnlyJob(t).ID || c.Get("status") != "active" {
		t.Errorf("the job was not kept: %s", c.State)
	}
	c.Connect(s.Attrs()) // the next run, mended
	c.Run(t.Context(), attrs{"prompt": "write"})
	s.Sent(t, 1, 0)

	c.ConnectTo(t.Context(), newPanicking(false), s.Attrs())
	updated := fakecli.Text(c.Run(t.Context(), attrs{"prompt": "write more"}))
	harness.Contains(t, updated, "ERROR: Internal error in the agent provider", s.OnlyJob(t).ID)
	c.Connect(s.Attrs())
	c.Run(t.Context(), attrs{"prompt": "write more"})
	s.Sent(t, 1, 1) // the message that was taken is in the state
	if c.Get("status") != "completed" || strings.Contains(created+updated, harness.CanaryKey) {
		t.Errorf("%s, or the key is in the output: %s%s", c.State, created, updated)
	}
}

// Red without: recovered in each of them.
func TestX06_panic_anywhere(t *testing.T) {
	s := harness.NewService(t, nil)
	c := fakecli.New(t, s.Attrs())
	c.Run(t.Context(), attrs{"prompt": "write"})
	id := s.OnlyJob(t).ID
	state, nothing := c.State, c.Decode(nil)
	apply := func(prior tftypes.Value) func() []*tfprotov6.Diagnostic {
		return func() []*tfprotov6.Diagnostic {
			c.State = prior
			return append(c.Plan(t.Context(), attrs{"prompt": "write more"}), c.Apply(t.Context(), attrs{"prompt": "write more"})...)
		}
	}
	invoke := func(action string, config attrs) func() []*tfprotov6.Diagnostic {
		return func() []*tfprotov6.Diagnostic {
			_, diags := c.Invoke(t.Context(), action, fakecli.With(attrs{"prompt": "write"}, config))
			return diags
		}
	}
	for _, test := range []struct {
		says string
		call func() []*tfprotov6.Diagnostic
	}{
		{`while starting a job in project proj_1. The prompt may have been sent: check the project's jobs`, apply(nothing)},
		{"while reading job " + id + " in project proj_1. A refresh sends no prompt.", func() []*tfprotov6.Diagnostic { c.State = state; return c.Refresh(t.Context()) }},
		{"while updating job " + id + " in project proj_1.", apply(state)},
		{"while reading job " + id + " in project proj_1. A data source sends no prompt.", func() []*tfprotov6.Diagnostic { _, diags := c.Data(t.Context(), attrs{"id": id}); return diags }},
		{"while starting a job in project proj_1. The prompt may have been sent:", invoke("agent_start_job", nil)},
		{"while sending a message to job " + id + " in project proj_1. The prompt may have been sent:", invoke("agent_send_message", attrs{"job_id": id})},
	} {
		c.ConnectTo(t.Context(), newPanicking(true), s.Attrs())
		got := fakecli.Text(test.call())
		harness.Contains(t, got, "ERROR: Internal error in the agent provider: The provider hit an internal error "+test.says, "https://github.com/agentjobs/terraform-provider-agent/issues")
		if strings.Contains(got, harness.CanaryKey) {
			t.Errorf("the key is in the output: %s", got)
		}
	}
	s.Sent(t, 1, 0)
}

// broken is a provider whose journal panics.
type broken struct{ agent }

func (p broken) Configure(ctx context.Context, req frameworkprovider.ConfigureRequest, resp *frameworkprovider.ConfigureResponse) {
	p.agent.Configure(ctx, req, resp)
	if data, ok := resp.ResourceData.(*job.ProviderData); ok {
		data.Sender.Journal = new(journal.Journal)
	}
}

// A crash of a plan would end the creates that the same apply has in flight. The log
// and the diagnostic say where it happened.
//
// Red without: recovered in ModifyPlan and Delete, report.
func TestX06_panic_while_planning(t *testing.T) {
	s := harness.NewService(t, nil)
	c := fakecli.New(t, s.Attrs())
	config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": t.TempDir()}})
	apply(t, c, "first", config, attrs{"prompt": "write"})
	for _, test := range []struct {
		says string
		call func(context.Context) []*tfprotov6.Diagnostic
	}{
		{"while planning. A plan sends no prompt.", func(ctx context.Context) []*tfprotov6.Diagnostic { return c.Plan(ctx, attrs{"prompt": "write more"}) }},
		{"while removing job " + c.Get("id").(string) + " in project proj_1 from the state. A destroy sends no prompt.", c.Destroy},
	} {
		c.ConnectTo(t.Context(), broken{provider.New("test", provider.Options{}).(agent)}, config)
		var log bytes.Buffer
		got := fakecli.Text(test.call(tflogtest.RootLogger(t.Context(), &log)))
		harness.Contains(t, got, "ERROR: Internal error in the agent provider: The provider hit an internal error "+test.says)
		harness.Contains(t, log.String(), `"@level":"error"`, `"@message":"the provider hit an internal error"`, "journal.(*Journal)")
		harness.Contains(t, got, "The error: runtime error: invalid memory address or nil pointer dereference, in journal.(*")
	}
}
