// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

// figure is one measured value: the median of the samples.
type figure struct {
	Name    string  `json:"name"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	Goal    float64 `json:"goal,omitempty"` // at most; 0: none
	samples []float64
}

// figures are in the order in which they were first noted.
type figures struct{ all []figure }

// note keeps one sample of a figure. A zero was not measured: it is left out,
// so that it does not look as if it had met a goal.
func (f *figures) note(name string, value float64, unit string, goal float64) {
	if value == 0 {
		return
	}
	i := slices.IndexFunc(f.all, func(known figure) bool { return known.Name == name })
	if i < 0 {
		i = len(f.all)
		f.all = append(f.all, figure{Name: name, Unit: unit, Goal: goal})
	}
	known := &f.all[i]
	known.samples = append(known.samples, value)
	slices.Sort(known.samples)
	known.Value = known.samples[len(known.samples)/2]
}

func (f *figures) print(out io.Writer) {
	for _, known := range f.all {
		verdict := ""
		if known.Goal > 0 {
			verdict = fmt.Sprintf("at most %g", known.Goal)
			if known.Value > known.Goal {
				verdict += fmt.Sprintf(", MISSED by %.2f times", known.Value/known.Goal)
			}
		}
		fmt.Fprintf(out, "%-45s %10.2f %-6s %s\n", known.Name, known.Value, known.Unit, verdict)
	}
}

func (f *figures) write(file string, cli tfcli.CLI, repeat int) error {
	text, err := json.MarshalIndent(struct {
		CLI     string   `json:"cli"`
		Repeat  int      `json:"repeat"`
		Figures []figure `json:"figures"`
	}{cli.Name(), repeat, f.all}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o600)
}
