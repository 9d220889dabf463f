// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"os"
	"path/filepath"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

// scopeRows change what a journal is for between the two runs.
func scopeRows() []Row {
	write := func(name, text string) func(m *Matrix) {
		return func(m *Matrix) {
			if err := os.WriteFile(filepath.Join(m.data, name), []byte(text), 0o600); err != nil {
				m.Fatal(err)
			}
		}
	}
	backend := func(path string) func(m *Matrix) {
		return write("terraform.tfstate", `{"version":3,"backend":{"type":"local","config":{"path":"`+path+`"}}}`)
	}
	workspace := func(name string) func(m *Matrix) {
		return func(m *Matrix) { m.Setenv("TF_WORKSPACE", name) }
	}
	configure := func(name string, value any) func(m *Matrix) {
		return func(m *Matrix) { m.config[name] = value }
	}
	var rows []Row
	for name, c := range map[string]struct {
		first, second func(m *Matrix)
		job           attrs // of the second run, laid over the first one's
		same          bool
	}{
		"other_workspace":               {first: workspace("a"), second: workspace("b")},
		"other_selected_workspace":      {first: write("environment", "a"), second: write("environment", "b")},
		"workspace_over_selected_one":   {first: write("environment", "a"), second: workspace("b")},
		"same_workspace_by_other_means": {first: write("environment", "a"), second: workspace("a"), same: true},
		"default_workspace_selected":    {second: write("environment", "default"), same: true},
		"default_workspace_named":       {second: workspace("default"), same: true},
		"other_backend":                 {first: backend("a"), second: backend("b")},
		"same_backend":                  {first: backend("a"), second: backend("a"), same: true},
		"other_base_url":                {second: configure("base_url", "http://127.0.0.1:2")},
		"other_default_project":         {second: configure("project_id", "proj_2")},
		"other_project":                 {job: attrs{"project_id": "proj_2"}},
		"other_prompt":                  {job: attrs{"prompt": "Add a tutorial"}},
		"other_triggers":                {job: attrs{"triggers": attrs{"a": "1"}}},
		"other_timeouts":                {job: attrs{"timeouts": attrs{"create": "5m"}}, same: true},
	} {
		// Red without: each part of journalScope and createKey.
		rows = append(rows, Row{name: "X07_" + name, clock: true, Test: func(m *Matrix) {
			if c.first != nil {
				c.first(m)
			}
			id := m.started(Job1())
			if c.second != nil {
				c.second(m)
				m.OK(m.connect())
			}
			job := fakecli.With(Job1(), c.job)
			if c.same {
				m.takesOver(job, id)
				return
			}
			m.starts(job, id)
			m.process.Close(m.ctx)
			m.wantEntries(1) // that of the killed run
		}})
	}
	return rows
}
