// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package place

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
)

var update = flag.Bool("update", false, "write into settings.tsv which settings are refused; what is new, or no longer refused, becomes honoured")

// A value that a setting could have, for names that the first pattern matches.
var plausible = []struct {
	name *regexp.Regexp
	text string
}{
	{regexp.MustCompile(`(?i)^(ARM_USE|AWS_USE|TF)_|_DISABLED$`), "true"},
	{regexp.MustCompile(`(?i)environment$`), "usgovernment"},
	{regexp.MustCompile(`(?i)endpoint_mode$`), "IPv6"},
	{regexp.MustCompile(`(?i)storage_custom_endpoint$`), "https://canary.example.com/storage/v1"},
	{regexp.MustCompile(`(?i)endpoint|proxy$|_URL|requesturi$`), "https://canary.example.com"},
	{regexp.MustCompile(`(?i)(sse_customer|encryption|customer_provided)_key$`), "Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5Y2E="},
	{regexp.MustCompile(`(?i)account_ids$`), "123456789012"},
	{regexp.MustCompile(`(?i)role_arn$`), "arn:aws:iam::123456789012:role/canary"},
	{regexp.MustCompile(`(?i)duration$`), "20m"},
	{regexp.MustCompile(`(?i)retry_mode$`), "standard"},
	{regexp.MustCompile(``), "canary"},
}

// settings.tsv says what a journal does with each attribute and variable of the CLIs' backends. The command
// internal/tools/backends writes which there are.
func TestSettings(t *testing.T) {
	const file = "settings.tsv"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for _, line := range lines[1:] {
		if row := strings.Split(line, "\t"); row[2] == "variable" {
			t.Setenv(row[1], "")
		}
	}
	for i, line := range lines[1:] {
		row := strings.Split(line, "\t")
		backend, name, kind, status := row[0], row[1], row[2], row[4]
		of, ok := find(func(k bucket.Kind) bool { return k.Backend == backend })
		if !ok {
			t.Fatalf("no kind of store has the backend %s", backend)
		}
		t.Run(backend+"/"+name, func(t *testing.T) {
			value := ""
			for _, p := range plausible {
				if value == "" && p.name.MatchString(name) {
					value = p.text
				}
			}
			outer, inner, isNested := strings.Cut(name, ".")
			settings := map[string]any{}
			for required := range of.Locating {
				settings[required] = "canary"
			}
			if backend == "azurerm" { // or some identities cannot look up the account's key
				settings["resource_group_name"] = "canary"
			}
			set := map[string]any{
				"string": value, "bool": true, "number": 1200., "list": []any{value}, "map": map[string]any{"canary": value},
			}[kind]
			switch {
			case kind == "variable":
				t.Setenv(name, value)
			case isNested:
				nested := map[string]any{}
				if strings.HasPrefix(outer, "assume_role") { // what it must have
					nested["role_arn"] = "arn:aws:iam::123456789012:role/canary"
				}
				if outer == "assume_role_with_web_identity" && inner != "web_identity_token_file" {
					nested["web_identity_token"] = "canary"
				}
				nested[inner] = set
				settings[outer] = nested
			default:
				settings[name] = set
			}
			_, _, err := Beside(cli.Backend{Type: backend, Settings: settings})
			if isRefused := err != nil; *update && (status == "" || isRefused != (status == "refused")) {
				row[4], row[5] = map[bool]string{true: "refused", false: "honoured"}[isRefused], ""
				lines[i+1] = strings.Join(row, "\t")
				return
			}
			switch status {
			case "honoured", "irrelevant":
				if err != nil {
					t.Errorf("%s, but: %v", status, err)
				}
			case "refused":
				if err == nil {
					t.Fatal("refused, but no error")
				}
				// The error may name the setting that a variable stands for.
				setting := regexp.MustCompile(`the setting (\w+)`).FindStringSubmatch(err.Error())
				isNamed := strings.Contains(err.Error(), outer) || setting != nil && kind == "variable" &&
					(strings.HasSuffix(strings.ToLower(name), setting[1]) || name == "ARM_USE_DNS_ZONE_ENDPOINT")
				if !isNamed || strings.Contains(err.Error(), value) || strings.Contains(err.Error(), "canary") {
					t.Errorf("must name what is refused, and show no value: %v", err)
				}
			default:
				t.Errorf("%q: want honoured, irrelevant or refused", status)
			}
		})
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
