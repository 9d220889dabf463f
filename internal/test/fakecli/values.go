// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package fakecli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Attrs is a configuration or a state by attribute; nil is null, Unknown{} unknown, []any a list or a set.
type Attrs map[string]any

// Unknown is a value that a plan does not know.
type Unknown struct{}

// Object makes a value of the schema's type; what is not given is null.
func Object(kind tftypes.Object, given Attrs) tftypes.Value {
	values := map[string]tftypes.Value{}
	for name, attribute := range kind.AttributeTypes {
		values[name] = value(attribute, given[name])
	}
	return tftypes.NewValue(kind, values)
}

func value(kind tftypes.Type, given any) tftypes.Value {
	switch given := given.(type) {
	case nil:
		return tftypes.NewValue(kind, nil)
	case Unknown:
		return tftypes.NewValue(kind, tftypes.UnknownValue)
	case tftypes.Value:
		return given
	case Attrs:
		if kind, ok := kind.(tftypes.Map); ok {
			elements := map[string]tftypes.Value{}
			for name, element := range given {
				elements[name] = value(kind.ElementType, element)
			}
			return tftypes.NewValue(kind, elements)
		}
		return Object(kind.(tftypes.Object), given)
	case []any:
		var of tftypes.Type
		switch kind := kind.(type) {
		case tftypes.List:
			of = kind.ElementType
		case tftypes.Set:
			of = kind.ElementType
		}
		elements := []tftypes.Value{}
		for _, element := range given {
			elements = append(elements, value(of, element))
		}
		return tftypes.NewValue(kind, elements)
	default:
		return tftypes.NewValue(kind, given)
	}
}

// Failed reports whether one of them is an error.
func Failed(diags []*tfprotov6.Diagnostic) bool {
	return slices.ContainsFunc(diags, isError)
}

func isError(d *tfprotov6.Diagnostic) bool { return d.Severity == tfprotov6.DiagnosticSeverityError }

// Text is what the CLI would show of diagnostics, one "severity: summary: detail" each.
func Text(diags []*tfprotov6.Diagnostic) string {
	var all strings.Builder
	for _, d := range diags {
		fmt.Fprintf(&all, "%s: %s: %s\n", d.Severity, d.Summary, d.Detail)
	}
	return all.String()
}

// With returns base with more laid over.
func With(base, more Attrs) Attrs {
	all := maps.Clone(base)
	maps.Copy(all, more)
	return all
}

// WantPath asserts an error that points at one attribute, or into it.
func WantPath(t *testing.T, diags []*tfprotov6.Diagnostic, names ...string) {
	t.Helper()
	path := tftypes.NewAttributePath()
	for _, name := range names {
		path = path.WithAttributeName(name)
	}
	if !slices.ContainsFunc(diags, func(d *tfprotov6.Diagnostic) bool {
		return isError(d) && slices.EqualFunc(path.Steps(), d.Attribute.Steps()[:min(len(names), len(d.Attribute.Steps()))], tftypes.AttributePathStep.Equal)
	}) {
		t.Errorf("no error at %s in:\n%s", path, Text(diags))
	}
}
