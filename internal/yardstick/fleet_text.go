package yardstick

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteText writes the result as text.
func (r *FleetResult) WriteText(w io.Writer, c *FleetConfig) error {
	spread := "all with the same demand"
	if c.Zipf {
		spread = "with demands by Zipf's law"
	}
	fmt.Fprintf(w, "One limit of %v with a burst of %d over %d instances, %s, %v each\n\n", c.Quota.Rate, c.Quota.Burst, c.Instances, spread, c.For)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "DEMAND\tLIMIT\tASKED\tADMITTED\tERRORS\tUSE\tOVER\tCALLS/S\tSETTLED/S\tP50\tP99")
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%g ×\t%s\t%d\t%d\t%d\t%.1f%%\t%.0f\t%.0f\t%.0f\t%s\t%s\n", row.Demand, row.Policy, row.Asked, row.Admitted, row.Errors,
			100*row.Use, row.Overshoot, row.Calls, row.Settlements, Micros(row.P50US), Micros(row.P99US))
	}
	return t.Flush()
}
