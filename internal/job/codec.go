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

// The framework reads and writes a model by reflection, which compiles a regular
// expression for each field of each call: a third of the CPU of a refresh. So the
// attributes of a job are named here.

// attributes are the model's fields by the name that the schema gives them.
func (m *jobModel) attributes() map[string]attr.Value {
	return map[string]attr.Value{
		"prompt": m.Prompt, "prompt_wo": types.StringNull(), "triggers": m.Triggers, "project_id": m.ProjectID, "wait": m.Wait, "timeouts": m.Timeouts,
		"id": m.ID, "status": m.Status, "source": m.Source, "model": m.Model, "pr_link": m.PRLink,
		"created_at": m.CreatedAt, "archived_at": m.ArchivedAt,
	}
}

// encode makes the value of a plan or a state, of the schema's type.
func (m *jobModel) encode(ctx context.Context, kind tftypes.Type) (tftypes.Value, error) {
	return encode(ctx, kind, m.attributes())
}

// encodeIdentity makes the value of the job's identity.
func (m *jobModel) encodeIdentity(ctx context.Context, kind tftypes.Type) (tftypes.Value, error) {
	return encode(ctx, kind, map[string]attr.Value{"project_id": m.ProjectID, "id": m.ID})
}

func encode(ctx context.Context, kind tftypes.Type, attributes map[string]attr.Value) (tftypes.Value, error) {
	values := make(map[string]tftypes.Value, len(attributes))
	for name, attribute := range attributes {
		value, err := attribute.ToTerraformValue(ctx)
		if err != nil {
			return tftypes.Value{}, fmt.Errorf("%s: %w", name, err)
		}
		values[name] = value
	}
	if err := tftypes.ValidateValue(kind, values); err != nil {
		return tftypes.Value{}, err
	}
	return tftypes.NewValue(kind, values), nil
}

// decode reads the value of a plan or a state.
func (m *jobModel) decode(ctx context.Context, raw tftypes.Value) diag.Diagnostics {
	return decode(ctx, raw, map[string]field{
		"prompt":      stringField(&m.Prompt),
		"triggers":    fieldOf(&m.Triggers, types.MapType{ElemType: types.StringType}),
		"project_id":  stringField(&m.ProjectID),
		"wait":        fieldOf(&m.Wait, types.ObjectType{AttrTypes: waitTypes}),
		"timeouts":    fieldOf(&m.Timeouts, timeouts.Type{ObjectType: types.ObjectType{AttrTypes: timeoutTypes}}),
		"id":          stringField(&m.ID),
		"status":      stringField(&m.Status),
		"source":      fieldOf(&m.Source, types.ObjectType{AttrTypes: sourceTypes}),
		"model":       stringField(&m.Model),
		"pr_link":     stringField(&m.PRLink),
		"created_at":  stringField(&m.CreatedAt),
		"archived_at": stringField(&m.ArchivedAt),
	})
}

// decodePlan reads a plan, and what only the configuration holds: the write-only
// prompt, and the project that it names.
func (m *jobModel) decodePlan(ctx context.Context, plan, config tftypes.Value) (projectID types.String, diags diag.Diagnostics) {
	diags = m.decode(ctx, plan)
	diags.Append(decode(ctx, config, map[string]field{"prompt_wo": stringField(&m.PromptWO), "project_id": stringField(&projectID)})...)
	return projectID, diags
}

//nolint:gochecknoglobals // never changed
var (
	waitTypes    = map[string]attr.Type{"enabled": types.BoolType, "on_failure": types.StringType, "on_timeout": types.StringType}
	timeoutTypes = map[string]attr.Type{"create": types.StringType, "update": types.StringType}
)

// field reads one attribute into a model.
type field func(context.Context, tftypes.Value) error

func stringField(to *types.String) field { return fieldOf(to, types.StringType) }

func fieldOf[V attr.Value](to *V, kind attr.Type) field {
	return func(ctx context.Context, raw tftypes.Value) error {
		value, err := kind.ValueFromTerraform(ctx, raw)
		if err != nil {
			return err
		}
		typed, ok := value.(V)
		if !ok {
			return fmt.Errorf("unexpected type %T", value)
		}
		*to = typed
		return nil
	}
}

func decode(ctx context.Context, raw tftypes.Value, fields map[string]field) diag.Diagnostics {
	var values map[string]tftypes.Value
	if err := raw.As(&values); err != nil {
		return codecFailed("the job", err)
	}
	for name, read := range fields {
		if err := read(ctx, values[name]); err != nil {
			return codecFailed(name, err)
		}
	}
	return nil
}

// codecFailed reports a value that does not fit the schema. No call has sent
// anything before it decodes.
func codecFailed(value string, err error) diag.Diagnostics {
	return diag.Diagnostics{diag.NewErrorDiagnostic(internalError(fmt.Sprintf("The value of %s does not fit the schema: %s. Nothing was sent for this resource.", value, err)))}
}
