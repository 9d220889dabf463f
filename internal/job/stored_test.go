// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
)

// What later runs and later versions read: marks in the private state, the job in the state, and what records have hashes of.

func TestMarks_transitions(t *testing.T) {
	t.Parallel()
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of a bubble's clock
	const active, completed = agentapi.StatusActive, agentapi.StatusCompleted
	type transition = func(m *messageMarks)
	observed := func(was, status, want agentapi.Status) transition {
		return func(m *messageMarks) {
			before := &jobModel{shownJob: shownJob{Status: types.StringValue(string(was))}}
			if got := m.observed(before, status); got != want {
				t.Errorf("a job that was %s and is %s counts as %s, want %s", was, status, got, want)
			}
		}
	}
	messaged := func(at time.Time) transition { return func(m *messageMarks) { m.accepted(at) } }
	interrupted := func(status agentapi.Status) transition {
		return func(m *messageMarks) { m.interrupted(status) }
	}
	unconfirmed, recent, refuses := messageMarks{Unconfirmed: true}, messageMarks{SentAt: start}, messageMarks{RefusesMessages: true}
	for name, test := range map[string]struct {
		before messageMarks
		do     transition
		want   messageMarks
	}{
		"a message that arrived":        {unconfirmed, messaged(start), recent},
		"a message without a response":  {messageMarks{}, (*messageMarks).unanswered, unconfirmed},
		"another one":                   {unconfirmed, (*messageMarks).unanswered, unconfirmed},
		"an unconfirmed message shows":  {unconfirmed, observed(completed, active, active), messageMarks{}},
		"not if the job was active":     {unconfirmed, observed(active, active, active), unconfirmed},
		"a refusal, then active":        {refuses, observed(completed, active, active), messageMarks{}},
		"a refusal, then finished":      {refuses, observed(completed, completed, completed), refuses},
		"a refusal, then a message":     {refuses, messaged(start), recent},
		"nor without a status":          {unconfirmed, observed(completed, "", ""), unconfirmed},
		"a status soon after a message": {recent, observed(active, completed, active), recent},
		"no status after a message":     {recent, observed(active, "", ""), recent},
		"a clock that was ahead":        {messageMarks{SentAt: start.Add(time.Hour)}, observed(active, completed, active), recent},
		"a status later":                {messageMarks{SentAt: start.Add(-agentapi.StaleFor)}, observed(active, completed, completed), messageMarks{}},
		"a wait interrupted in the run": {recent, interrupted(active), messageMarks{}},
		"a wait interrupted before it":  {recent, interrupted(completed), recent},
		"a finished job":                {messageMarks{Unconfirmed: true, SentAt: start}, (*messageMarks).finished, unconfirmed},
	} {
		synctest.Test(t, func(t *testing.T) {
			test.do(&test.before)
			if diff := cmp.Diff(test.want, test.before); diff != "" {
				t.Errorf("marks after %s (-want +got):\n%s", name, diff)
			}
		})
	}
}

// private is a private state.
type private map[string][]byte

func (p private) GetKey(_ context.Context, key string) ([]byte, diag.Diagnostics) { return p[key], nil }
func (p private) SetKey(_ context.Context, key string, value []byte) diag.Diagnostics {
	if p[key] = value; value == nil {
		delete(p, key)
	}
	return nil
}

// States keep these keys and values: an unconfirmed message must stay unconfirmed, and a hash comparable.
func TestMarks_stored(t *testing.T) {
	t.Parallel()
	read, written := private{
		"message":     []byte(`{"sent":"2026-11-23T00:24:16Z","unconfirmed":true,"closed":true}`),
		"holder":      []byte(`"random"`),
		"replacement": []byte(`{"job":"job_1","same":true,"by":{"project":"proj_1","name":"docs"}}`),
	}, private{}
	want := marks{
		messageMarks{SentAt: time.Date(2026, 11, 23, 0, 24, 16, 0, time.UTC), Unconfirmed: true, RefusesMessages: true},
		replacement{OldJob: "job_1", MayBeSame: true, Next: &projectAndName{"proj_1", "docs"}},
		"random",
	}
	m := readMarks(t.Context(), read)
	if diff := cmp.Diff(want, *m, cmp.AllowUnexported(marks{})); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	m.write(t.Context(), written)
	if diff := cmp.Diff(read, written); diff != "" {
		t.Errorf("written (-read +written):\n%s", diff)
	}
	if new(marks).write(t.Context(), written); len(written) > 0 {
		t.Errorf("keys without a mark: %v", written)
	}
}

// A job that cannot be written after a POST is named, and nothing denies the POST.
func TestSave_failed(t *testing.T) {
	t.Parallel()
	var diags diag.Diagnostics
	job := jobModel{
		ProjectID: types.StringValue("proj_1"), arguments: arguments{Triggers: types.MapNull(types.StringType)},
		shownJob: shownJob{ID: types.StringValue("job_1")},
	}
	state := &tfsdk.State{Schema: schema.Schema{}, Raw: tftypes.NewValue(tftypes.Object{}, nil)}
	stateWriter{state: state, private: private{}, marks: new(marks), diags: &diags}.save(t.Context(), &job)
	if len(diags) != 2 { // the first one is the framework's
		t.Fatalf("diagnostics: %v", diags)
	}
	detail := diags[1].Detail()
	for _, want := range []string{
		"Job job_1 in project proj_1 could not be written to the state. ", "The prompt may have been sent",
		"https://github.com/agentjobs/terraform-provider-agent/issues",
	} {
		if !strings.Contains(detail, want) {
			t.Errorf("missing %q in:\n%s", want, detail)
		}
	}
}

// A later version finds what an earlier one has recorded, or it would send that again: records have the hash of these triggers.
func TestRequest_triggers(t *testing.T) {
	t.Parallel()
	for want, triggers := range map[string]types.Map{
		"null{}":               types.MapNull(types.StringType),
		"{}{}":                 types.MapValueMust(types.StringType, nil),
		`{"a":null,"b":"1"}{}`: types.MapValueMust(types.StringType, map[string]attr.Value{"b": types.StringValue("1"), "a": types.StringNull()}),
	} {
		job := jobModel{Prompt: types.StringValue("prompt"), arguments: arguments{Triggers: triggers}}
		if got := job.request(t.Context(), "").Arguments; got != want {
			t.Errorf("the triggers of earlier versions were %s, and are %s", want, got)
		}
	}
}

// What is the same prompt, for states and journals: their hashes depend on it.
func TestCanonical(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a\n\nb":                            "a\n\nb",
		"a\r\n\r\nb\r\n":                    "a\n\nb",
		"a\r\r\nb":                          "a\nb",
		"\ufeffa \n\u00a0\n\t b\t\n \v\n\r": "a\n\n\t b",
		"\ufeff \r\n":                       "",
		// What is a change.
		"a\rb":       "a\rb",
		"a  b":       "a  b",
		" a":         " a",
		"\n\na":      "\n\na",
		"a\n\n\nb":   "a\n\n\nb",
		"a\ufeffb":   "a\ufeffb",
		"a\u200b\n":  "a\u200b",
		"A\u0308.\n": "A\u0308.",
	} {
		if got := canonical(text); got != want {
			t.Errorf("canonical(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestWebLink_P03(t *testing.T) {
	t.Parallel()
	longest := "https://example.com/" + strings.Repeat("a", maxLinkLength-len("https://example.com/"))
	for want, links := range map[bool][]string{
		true: {
			"https://github.com/acme/docs.md/pull/1/files#diff-1", "http://127.0.0.1:8787/pull/1", "HTTPS://git_1.example.com", longest,
			"https://gitlab.example.com/a/b/c++/-/merge_requests/1/diffs?view=inline#note_1", "https://bitbucket.org/acme/docs/pull-requests/1",
			"https://git.example.com:7990/context/projects/~me/repos/docs/pull-requests/1/overview",
			"https://dev.azure.com/acme/my%20docs/_git/x/pullrequest/1?_a=files", "https://acme.visualstudio.com/docs/_git/docs/pullrequest/1",
			"https://xn--bcher-kva.example/", "https://example.com?a", "https://example.com#b",
		},
		false: {
			"", "/pull/1", "//example.com/1", "https:example.com/1", "https:///pull/1", "https://", "https://:443/", "ftp://example.com/1",
			"javascript:alert(1)//https://example.com/", " https://example.com/", longest + "a",
			"https://github.com@evil.example/", "https://github.com:443@evil.example/", "https://user:pass@example.com/", "https://@example.com/",
			`https://evil.example\@github.com/`, `https:\\example.com/`, "https://github.com%2f@evil.example/", "https://github%2ecom/",
			"https://gіthub.com/", "https://github.com\u2044pull.evil.example/", "https://github.com。evil.example/", "https://bücher.example/",
			"https://example.com/\u202e1", "https://example.com/\u200b1", "https://example.com/é", "https://example.com/\xff",
			"https://example.com/ 1", "https://example.com/\n", "https://example.com/\x1b[2J", "https://example.com/\x00",
			"https://example.com/\"><b>", "https://example.com/`id`", "https://example.com/{1}|^", "https://example.com:80x/", "https://[::1/",
			"http://[::1]:80/",
			"https://x/a)[text](https://evil)", "https://x/a]", "https://x/a?b[]=1", "https://x/$(id)", "https://x/$HOME", "https://x/a;id",
			"https://x/a&b", "https://x/?a=1&b=2", "https://x/a|b", "https://x/'", "https://x/a*", "https://x/!x", "https://x/a,b", "https://x/@a",
			"https://x/a:~root", "https://x/a<b", "https://x/%", "https://x/%2", "https://x/%zz", "https://x/%%20",
		},
	} {
		for _, link := range links {
			if got := webLink(link); got != want {
				t.Errorf("webLink(%q) = %t, want %t", link, got, want)
			}
		}
	}
}

// Whoever reads a link sees the host that it leads to, and nothing in it ends a Markdown link or a word of a shell.
func FuzzWebLink(f *testing.F) {
	for _, seed := range []string{
		"https://github.com/acme/docs/pull/1", "http://x:1/?a#b", "https://a@b", "https://x/a)[b](c", "https://x/%41", "https://[::1]/",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, link string) {
		if !webLink(link) {
			return
		}
		if u, err := url.Parse(link); err != nil || u.User != nil || u.Host == "" || !strings.HasPrefix(link[len(u.Scheme):], "://"+u.Host) {
			t.Errorf("%q is a link: %v, %v", link, u, err)
		}
		if strings.ContainsAny(link, " \t\r\n\"'`()[]{}<>$;|&*!\\^,@") {
			t.Errorf("%q is a link", link)
		}
	})
}
