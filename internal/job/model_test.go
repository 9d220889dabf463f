// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// filled makes a value of kind without a null in it; no text comes twice, and
// each is a duration.
func filled(kind tftypes.Type, texts *int) tftypes.Value {
	switch kind := kind.(type) {
	case tftypes.Object:
		values := map[string]tftypes.Value{}
		for _, name := range slices.Sorted(maps.Keys(kind.AttributeTypes)) {
			values[name] = filled(kind.AttributeTypes[name], texts)
		}
		return tftypes.NewValue(kind, values)
	case tftypes.Map:
		return tftypes.NewValue(kind, map[string]tftypes.Value{"key": filled(kind.ElementType, texts)})
	}
	if kind.Is(tftypes.Bool) {
		return tftypes.NewValue(kind, true)
	}
	*texts++
	return tftypes.NewValue(kind, fmt.Sprintf("%dm", *texts))
}

func members(t *testing.T, object tftypes.Value) map[string]tftypes.Value {
	t.Helper()
	values := map[string]tftypes.Value{}
	if err := object.As(&values); err != nil {
		t.Fatal(err)
	}
	return values
}

// Every attribute of the schema comes through a plan and an update that change
// another one. First for whoever adds an attribute: what else fails then says less.
func TestCodecKnowsEveryAttribute(t *testing.T) {
	c := fakecli.Unconfigured(t)
	texts := 0
	want := members(t, filled(c.Resource, &texts))
	want["status"] = tftypes.NewValue(tftypes.String, "completed")
	want["prompt_wo"] = tftypes.NewValue(tftypes.String, nil) // in no state
	c.State = tftypes.NewValue(c.Resource, maps.Clone(want))
	want["wait"] = tftypes.NewValue(want["wait"].Type(), nil)
	config := attrs{}
	for name, value := range want {
		if !slices.Contains(c.Computed, name) {
			config[name] = value
		}
	}
	if diags := c.Run(t.Context(), config); fakecli.Failed(diags) {
		t.Fatalf("is each attribute of the schema in jobModel?\n%s", fakecli.Text(diags))
	}
	for name, got := range members(t, c.State) {
		if !got.Equal(want[name]) {
			t.Errorf("%s was %s and is %s", name, want[name], got)
		}
	}
}

// A message may change every attribute that the service returns, except these.
func TestPlanOfAMessagePromisesOnlyWhatNeverChanges(t *testing.T) {
	never := []string{"id", "created_at", "project_id"}
	s := harness.NewService(t, nil)
	c := fakecli.New(t, s.Attrs())
	if diags := append(c.Run(t.Context(), attrs{"prompt": "write"}), c.Plan(t.Context(), attrs{"prompt": "write more"})...); fakecli.Failed(diags) {
		t.Fatal(fakecli.Text(diags))
	}
	for _, name := range c.Computed {
		if promised := c.Attribute(c.Planned, name) != (unknown{}); promised != slices.Contains(never, name) {
			t.Errorf("the plan promises %s: %t. Can a message change it? If so, it belongs into markComputedUnknown (plan.go), if not, into this test", name, promised)
		}
	}
}
