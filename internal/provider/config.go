// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/check"
	"github.com/agentjobs/terraform-provider-agent/internal/job"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/place"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// The environment variables for attributes that are not set.
const (
	envBaseURL  = "AGENT_BASE_URL"
	envAdminKey = "AGENT_ADMIN_KEY"
	// These two do not replace the attribute: the lower value applies.
	envMaxNewJobs  = "AGENT_MAX_NEW_JOBS"
	envMaxMessages = "AGENT_MAX_MESSAGES"
)

const (
	defaultRequestTimeout  = 60 * time.Second
	defaultMinInterval     = 800 * time.Millisecond
	defaultMaxInterval     = 10 * time.Second
	defaultMaxPollsPerSec  = 100
	shortestRequestTimeout = time.Second
	shortestPollInterval   = 10 * time.Millisecond
	defaultLimit           = 20 // new jobs, and messages: a job costs money
)

type providerModel struct {
	BaseURL           types.String `tfsdk:"base_url"`
	AdminKey          types.String `tfsdk:"admin_key"`
	ProjectID         types.String `tfsdk:"project_id"`
	RequestTimeout    types.String `tfsdk:"request_timeout"`
	Poll              types.Object `tfsdk:"poll"`
	CACertificatesPEM types.String `tfsdk:"ca_certificates_pem"`
	Journal           types.Object `tfsdk:"journal"`
	MaxNewJobs        types.Int64  `tfsdk:"max_new_jobs"`
	MaxMessages       types.Int64  `tfsdk:"max_messages"`

	getenv func(string) string
}

type pollModel struct {
	MinInterval  types.String `tfsdk:"min_interval"`
	MaxInterval  types.String `tfsdk:"max_interval"`
	MaxPerSecond types.Int64  `tfsdk:"max_per_second"`
}

// providerData returns what resources and actions share: without a client unless all attributes are
// known and no required one is missing.
func (m providerModel) providerData(
	ctx context.Context, p *agentProvider, req provider.ConfigureRequest, diags *diag.Diagnostics,
) *job.ProviderData {
	isKnown := req.Config.Raw.IsFullyKnown()
	data, records := &job.ProviderData{ProjectID: m.projectID(diags)}, journal.InMemory()
	data.Sender.Journal = records
	data.Sender.Limits.ByKind[send.Create] = m.limit(m.MaxNewJobs, "max_new_jobs", envMaxNewJobs, diags)
	data.Sender.Limits.ByKind[send.Message] = m.limit(m.MaxMessages, "max_messages", envMaxMessages, diags)
	poll := m.pollBlock(ctx, diags)
	client, schedule := m.clientConfig(poll, diags), poll.schedule(diags)
	client.UserAgent = fmt.Sprintf("terraform-provider-agent/%s (+terraform %s)", p.version, req.TerraformVersion)
	client.Dial = p.options.Dial
	named, forget, hasJournal := m.journal(ctx, diags)
	records.Forget = forget // also without the settings of the journal: a plan then reports these
	data.Missing = m.missing(hasJournal)
	if diags.HasError() || !isKnown {
		return data
	}

	data.Mask = keyMask(m.orEnv(m.AdminKey, envAdminKey).ValueString())
	if process := p.options.Process; process != nil {
		data.Command = process.Command
		if hasJournal && client.BaseURL != nil {
			where := place.Find(named, client.BaseURL, process)
			logPlace(ctx, where)
			data.Sender.Journal = journal.Open(process, journal.Options{
				Place: where, Forget: forget, RequestTimeout: client.RequestTimeout, Log: logDecision,
			})
			data.OnRunner = where.Location.Default && process.Command != "test" && isRunner(m.getenv)
		}
	}
	if len(data.Missing.Service) == 0 {
		data.Sender.Client = agentapi.New(client)
		data.Waiter = wait.Waiter{Poller: data.Sender.Client, Schedule: schedule}
	}
	return data
}

// projectID is the default project.
func (m providerModel) projectID(diags *diag.Diagnostics) types.String {
	project := m.orEnv(m.ProjectID, job.EnvProjectID)
	if !project.IsNull() && !project.IsUnknown() {
		if err := check.ID(project.ValueString()); err != nil {
			check.ErrorAt(diags, path.Root("project_id"), wording.InvalidID.Because(err, origin(m.ProjectID, job.EnvProjectID)))
		}
	}
	return project
}

// clientConfig is what the provider block says about the service.
func (m providerModel) clientConfig(poll pollModel, diags *diag.Diagnostics) agentapi.Config {
	return agentapi.Config{
		BaseURL:           m.baseURL(diags),
		Key:               m.adminKey(diags),
		RequestTimeout:    durationOr(m.RequestTimeout, defaultRequestTimeout),
		MaxPollsPerSecond: float64(cmp.Or(poll.MaxPerSecond.ValueInt64(), defaultMaxPollsPerSec)),
		RootCAs:           m.roots(diags),
		Log:               logExchange,
	}
}

// pollBlock is the block poll; without one, and as long as it is unknown, its values are null.
func (m providerModel) pollBlock(ctx context.Context, diags *diag.Diagnostics) (poll pollModel) {
	if !m.Poll.IsNull() && !m.Poll.IsUnknown() {
		diags.Append(m.Poll.As(ctx, &poll, basetypes.ObjectAsOptions{})...)
	}
	return poll
}

func (p pollModel) schedule(diags *diag.Diagnostics) wait.Schedule {
	schedule := wait.Schedule{
		Min: durationOr(p.MinInterval, defaultMinInterval),
		Max: durationOr(p.MaxInterval, defaultMaxInterval),
	}
	if schedule.Min > schedule.Max && !p.MinInterval.IsUnknown() && !p.MaxInterval.IsUnknown() {
		check.ErrorAt(diags, path.Root("poll").AtName("min_interval"),
			wording.InvalidDuration.Because(fmt.Errorf(
				"the shortest interval (%s) must not be longer than max_interval (%s); their defaults are %s and %s",
				schedule.Min, schedule.Max, defaultMinInterval, defaultMaxInterval)))
	}
	return schedule
}

// missing are the settings that are not set. A journal needs the URL, because each service has its
// own records.
func (m providerModel) missing(hasJournal bool) (missing job.Missing) {
	if m.orEnv(m.BaseURL, envBaseURL).IsNull() {
		missing.Service = append(missing.Service,
			wording.Missing("base_url", envBaseURL, "the URL of the agent service, for example https://api.example.com"))
		if hasJournal {
			missing.Journal = missing.Service
		}
	}
	if m.orEnv(m.AdminKey, envAdminKey).IsNull() {
		missing.Service = append(missing.Service, wording.Missing("admin_key", envAdminKey, "an admin API key of the agent service"))
	}
	return missing
}

func (m providerModel) baseURL(diags *diag.Diagnostics) *url.URL {
	value := m.orEnv(m.BaseURL, envBaseURL)
	if value.IsUnknown() || value.IsNull() {
		return nil
	}
	base, err := parseBaseURL(value.ValueString())
	switch {
	case err != nil:
		check.ErrorAt(diags, path.Root("base_url"), wording.InvalidBaseURL.Because(err, origin(m.BaseURL, envBaseURL)))
	case m.AdminKey.IsNull() && m.isElsewhere(base):
		check.ErrorAt(diags, path.Root("base_url"), wording.OtherBaseURL(envBaseURL))
	}
	return base
}

// isElsewhere reports whether the environment names another service. Whoever sets its variables
// decides where the key goes: otherwise a checkout could set another base_url, and a plan that
// reads a job would send the key there.
func (m providerModel) isElsewhere(base *url.URL) bool {
	text := m.getenv(envBaseURL)
	fromEnv, err := parseBaseURL(text)
	return text != "" && (err != nil || place.CanonicalURL(fromEnv).String() != place.CanonicalURL(base).String())
}

func (m providerModel) adminKey(diags *diag.Diagnostics) agentapi.Key {
	value := m.orEnv(m.AdminKey, envAdminKey)
	if !value.IsUnknown() && !value.IsNull() {
		if err := checkKey(value.ValueString()); err != nil {
			check.ErrorAt(diags, path.Root("admin_key"), wording.InvalidKey.Because(err, origin(m.AdminKey, envAdminKey)))
		}
	}
	return agentapi.NewKey(value.ValueString())
}

// limit returns the lower of an attribute and an environment variable, so that a configuration
// cannot raise the limit of the pipeline that runs it. An attribute that is unknown in a plan does
// not limit the plan: nothing is sent before its value is known.
func (m providerModel) limit(value types.Int64, name, variable string, diags *diag.Diagnostics) (lower send.Limit) {
	if !value.IsNull() && !value.IsUnknown() {
		lower = send.Limit{Setting: fmt.Sprintf("%s = %d", name, value.ValueInt64()), Max: value.ValueInt64()}
	}
	text := m.getenv(variable)
	if text == "" && value.IsNull() {
		return send.Limit{Setting: fmt.Sprintf("%s = %d (default)", name, defaultLimit), Max: defaultLimit}
	}
	if text == "" {
		return lower
	}
	fromEnv, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		check.ErrorAt(diags, path.Root(name), wording.BadLimit(variable, text))
	} else if lower.Setting == "" || int64(fromEnv) < lower.Max {
		lower = send.Limit{Setting: fmt.Sprintf("%s = %d", variable, fromEnv), Max: int64(fromEnv)}
	}
	return lower
}

// origin says where a value comes from that the provider block does not show.
func origin(value types.String, variable string) string {
	if value.IsNull() {
		return "The value comes from the environment variable " + variable + "."
	}
	return ""
}

// orEnv returns the environment variable when the value is null; an empty
// variable counts as not set.
func (m providerModel) orEnv(value types.String, variable string) types.String {
	if value.IsNull() {
		if text := m.getenv(variable); text != "" {
			return types.StringValue(text)
		}
	}
	return value
}

// durationOr parses a validated duration.
func durationOr(value types.String, fallback time.Duration) time.Duration {
	if d, err := time.ParseDuration(value.ValueString()); err == nil {
		return d
	}
	return fallback
}
