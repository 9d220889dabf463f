// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package testmatrix

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

// row is a line of the table: a result, or a note why there is none.
type row struct {
	cli    tfcli.CLI
	result *Result
	took   time.Duration
	note   string
}

// show prints the table, and below it why tests were skipped. The error names
// each CLI on which something failed, or nothing passed.
func show(out io.Writer, rows []row) error {
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CLI\tVERSION\tPASSED\tFAILED\tSKIPPED\tTOOK")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t", r.cli.Product, r.cli.Version)
		if r.result == nil {
			fmt.Fprintf(table, "-\t-\t-\t%s\n", r.note)
			continue
		}
		fmt.Fprintf(table, "%d\t%d\t%d\t%s\n", r.result.Passed, r.result.Failed, len(r.result.Skipped), r.took.Round(time.Second))
	}
	err := table.Flush()
	for _, r := range rows {
		if r.result == nil {
			continue
		}
		for _, s := range r.result.Skipped {
			fmt.Fprintf(out, "skipped on %s: %s: %s\n", r.cli.Name(), s.Test, s.Reason)
		}
		if !r.result.OK() {
			err = errors.Join(err, fmt.Errorf("%s: %d failed, %d passed", r.cli.Name(), r.result.Failed, r.result.Passed))
		}
	}
	return err
}
