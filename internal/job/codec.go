// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// The framework reads and writes a model by reflection, which compiles a
// regular expression for each field of each call: a third of the CPU of a
// refresh. A job is read and written so often that its attributes are named
// here instead.

// attributes are the model's fields by the name that the schema gives them.
func (m *jobModel) attributes() map[string]attr.Value {
	return map[string]attr.Value{
		"prompt": m.Prompt, "prompt_wo": types.StringNull(), "triggers": m.Triggers, "project_id": m.ProjectID, "wait": m.Wait, "timeouts": m.Timeouts,
		"id": m.ID, "status": m.Status, "source": m.Source, "model": m.Model, "pr_link": m.PRLink,
		"created_at": m.CreatedAt, "archived_at": m.ArchivedAt,
	}
}

// encode makes the value of a plan or a state, of the schema's type.
func (m *jobModel) encode(ctx context.Context, kind tftypes.Type) (tftypes.Value, diag.Diagnostics) {
	return encode(ctx, kind, m.attributes())
}

// encodeIdentity makes the value of the job's identity.
func (m *jobModel) encodeIdentity(ctx context.Context, kind tftypes.Type) (tftypes.Value, diag.Diagnostics) {
	return encode(ctx, kind, map[string]attr.Value{"project_id": m.ProjectID, "id": m.ID})
}

func encode(ctx context.Context, kind tftypes.Type, attributes map[string]attr.Value) (tftypes.Value, diag.Diagnostics) {
	values := make(map[string]tftypes.Value, len(attributes))
	for name, attribute := range attributes {
		value, err := attribute.ToTerraformValue(ctx)
		if err != nil {
			return tftypes.Value{}, codecFailed(name, err)
		}
		values[name] = value
	}
	if err := tftypes.ValidateValue(kind, values); err != nil {
		return tftypes.Value{}, codecFailed("job", err)
	}
	return tftypes.NewValue(kind, values), nil
}

// decode reads the value of a plan, a configuration or a state.
func (m *jobModel) decode(ctx context.Context, raw tftypes.Value) diag.Diagnostics {
	var values map[string]tftypes.Value
	if err := raw.As(&values); err != nil {
		return codecFailed("job", err)
	}
	for name, field := range map[string]*types.String{
		"prompt": &m.Prompt, "prompt_wo": &m.PromptWO, "project_id": &m.ProjectID, "id": &m.ID, "status": &m.Status, "model": &m.Model,
		"pr_link": &m.PRLink, "created_at": &m.CreatedAt, "archived_at": &m.ArchivedAt,
	} {
		value, err := decodeAs[types.String](ctx, types.StringType, values[name])
		if err != nil {
			return codecFailed(name, err)
		}
		*field = value
	}
	var err error
	if m.Triggers, err = decodeAs[types.Map](ctx, types.MapType{ElemType: types.StringType}, values["triggers"]); err != nil {
		return codecFailed("triggers", err)
	}
	if m.Wait, err = decodeAs[types.Object](ctx, types.ObjectType{AttrTypes: waitTypes}, values["wait"]); err != nil {
		return codecFailed("wait", err)
	}
	if m.Timeouts, err = decodeAs[timeouts.Value](ctx, timeouts.Type{ObjectType: types.ObjectType{AttrTypes: timeoutTypes}}, values["timeouts"]); err != nil {
		return codecFailed("timeouts", err)
	}
	if m.Source, err = decodeAs[types.Object](ctx, types.ObjectType{AttrTypes: sourceTypes}, values["source"]); err != nil {
		return codecFailed("source", err)
	}
	return nil
}

//nolint:gochecknoglobals // never changed
var (
	waitTypes    = map[string]attr.Type{"enabled": types.BoolType, "on_failure": types.StringType, "on_timeout": types.StringType}
	timeoutTypes = map[string]attr.Type{"create": types.StringType, "update": types.StringType}
)

func decodeAs[V attr.Value](ctx context.Context, kind attr.Type, raw tftypes.Value) (V, error) {
	value, err := kind.ValueFromTerraform(ctx, raw)
	if err != nil {
		var none V
		return none, err
	}
	typed, ok := value.(V)
	if !ok {
		return typed, fmt.Errorf("unexpected type %T", value)
	}
	return typed, nil
}

func codecFailed(attribute string, err error) diag.Diagnostics {
	return diag.Diagnostics{diag.NewErrorDiagnostic("Bug in the agent provider",
		fmt.Sprintf("The value of %s does not fit the schema: %s. Nothing was sent. Please report this.", attribute, err))}
}
