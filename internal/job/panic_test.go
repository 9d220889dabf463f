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
	"github.com/hashicorp/terraform-plugin-log/tflogtest"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/job"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// panicking is a provider that panics, with the key as the value, at each poll of a wait or,
// with early, as soon as a call has read its arguments.
type panicking struct {
	frameworkprovider.ProviderWithActions

	early bool
}

func newPanicking(early bool) frameworkprovider.Provider {
	return &panicking{provider.New("test", provider.Options{}).(frameworkprovider.ProviderWithActions), early}
}

func (p *panicking) Configure(ctx context.Context, req frameworkprovider.ConfigureRequest, resp *frameworkprovider.ConfigureResponse) {
	p.ProviderWithActions.Configure(ctx, req, resp)
	if data, ok := resp.ResourceData.(*job.ProviderData); ok {
		data.Waiter.Poller = p
		if p.early {
			data.Mask = func(context.Context) context.Context { panic(harness.CanaryKey) }
			data.Sender.Journal = new(journal.Journal) // in a plan and a destroy: a nil pointer
		}
	}
}

func (*panicking) PollJob(context.Context, string, string) (*agentapi.Job, error) {
	panic(harness.CanaryKey)
}

// Red without: recoverAndSave in Create, recoverAsError in Update.
func TestX06_panic_after_an_accepted_POST(t *testing.T) {
	s := harness.NewService(t, harness.Always(simulator.Script{Duration: 100 * time.Millisecond}))
	c := fakecli.New(t, s.Attrs())
	c.ConnectTo(t.Context(), newPanicking(false), s.Attrs())

	created := fakecli.Text(c.Run(t.Context(), attrs{"prompt": "write"}))
	harness.Contains(t, created, "ERROR: Internal error in the agent provider", s.OnlyJob(t).ID,
		"The error: string, in job_test.(*panicking).PollJob:", ", wait.Waiter.Wait:", ", job.applyCall.await:")
	if c.Get("id") != s.OnlyJob(t).ID || c.Get("status") != "active" {
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

// A create that was planned to adopt a job, and has not adopted it, has no job to save.
func TestX06_panic_before_an_adoption(t *testing.T) {
	s, folder := harness.NewService(t, nil), t.TempDir()
	c := fakecli.New(t, s.Attrs())
	config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": folder + stateName}})
	connect := func(run cli.Run) {
		c.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: harness.Process(run)}), config)
	}
	connect("first")
	wantErrors(t, c.Run(t.Context(), attrs{"prompt": "write"}))
	c.Forget()
	connect("second")
	wantErrors(t, c.Plan(t.Context(), attrs{"prompt": "write"}))
	c.ConnectTo(t.Context(), newPanicking(true), config)
	diags := c.ApplyPlanned(t.Context(), attrs{"prompt": "write"})
	harness.Contains(t, fakecli.Text(diags), "The provider hit an internal error while starting a job in project proj_1.")
	if !c.State.IsNull() {
		t.Error(c.State)
	}
}

// A crash would end the creates that the same apply has in flight. The log and the diagnostic say
// where it happened, without the value.
//
// Red without: recoverAsError in each of them, logPanic.
func TestX06_panic_anywhere(t *testing.T) {
	s := harness.NewService(t, nil)
	c, more := fakecli.New(t, s.Attrs()), attrs{"prompt": "write more"}
	wantErrors(t, c.Run(t.Context(), attrs{"prompt": "write"}))
	id, existing := s.OnlyJob(t).ID, *c
	planned := func(ctx context.Context) []*tfprotov6.Diagnostic { return c.ApplyPlanned(ctx, more) }
	invoke := func(action string, config attrs) func(context.Context) []*tfprotov6.Diagnostic {
		return func(ctx context.Context) []*tfprotov6.Diagnostic {
			_, diags := c.Invoke(ctx, action, fakecli.With(more, config))
			return diags
		}
	}
	const mayHaveSent = " The prompt may have been sent: check the project's jobs"
	for _, test := range []struct {
		while, says string
		creates     bool
		call        func(context.Context) []*tfprotov6.Diagnostic
	}{
		{"planning.", " A plan sends no prompt.", false, func(ctx context.Context) []*tfprotov6.Diagnostic { return c.Plan(ctx, more) }},
		{"starting a job in project proj_1.", mayHaveSent, true, planned},
		{"reading job " + id + " in project proj_1.", " A refresh sends no prompt.", false, c.Refresh},
		{"updating job " + id + " in project proj_1.", mayHaveSent, false, planned},
		{"removing job " + id + " in project proj_1 from the state.", " A destroy sends no prompt.", false, c.Destroy},
		{
			"reading job " + id + " in project proj_1.", " A data source sends no prompt.", false,
			func(ctx context.Context) []*tfprotov6.Diagnostic {
				_, diags := c.Data(ctx, attrs{"id": id})
				return diags
			},
		},
		{"starting a job in project proj_1.", mayHaveSent, false, invoke("agent_start_job", nil)},
		{"sending a message to job " + id + " in project proj_1.", mayHaveSent, false, invoke("agent_send_message", attrs{"job_id": id})},
	} {
		t.Run(test.while+test.says, func(t *testing.T) {
			*c = existing
			c.T = t
			if test.creates {
				c.Forget()
			}
			c.Connect(s.Attrs())
			c.Plan(t.Context(), more)
			c.ConnectTo(t.Context(), newPanicking(true), s.Attrs())
			var log bytes.Buffer
			got := fakecli.Text(test.call(tflogtest.RootLogger(t.Context(), &log)))
			harness.Contains(t, got, "ERROR: Internal error in the agent provider: The provider hit an internal error while "+test.while+test.says,
				"\n\nThe error: ", "https://github.com/agentjobs/terraform-provider-agent/issues")
			if test.while == "planning." {
				harness.Contains(t, got, "runtime error: invalid memory address or nil pointer dereference, in journal.(*")
			}
			harness.Contains(t, log.String(), `"@level":"error"`, `"@message":"the provider hit an internal error"`, "internal/job")
			if strings.Contains(got+log.String(), harness.CanaryKey) {
				t.Errorf("the key is in the output: %s%s", got, &log)
			}
		})
	}
	s.Sent(t, 1, 0)
}
