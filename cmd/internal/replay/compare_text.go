package replay

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/hotparam/hotparam/internal/hotwords"
)

// Comparison is the last line of `replay --what-if --json`.
type Comparison struct {
	Event    string  `json:"event"` // "summary"
	Requests int64   `json:"requests"`
	Skipped  int64   `json:"skipped"`
	Seconds  float64 `json:"seconds"`
	Changed  int     `json:"changed"` // number of keys
	Before   Totals  `json:"before"`
	After    Totals  `json:"after"`
}

// Totals are the results of one version of the rules.
type Totals struct {
	Hot     int64 `json:"hot"`     // keys that were hot at least once
	Limited int64 `json:"limited"` // number of requests
}

// Sum compares two replays of the same log, whose keys have these differences.
func Sum(before, after Summary, all []Difference) *Comparison {
	c := &Comparison{
		Event: "summary", Requests: before.Requests, Skipped: before.Skipped, Seconds: before.Seconds,
		Before: Totals{before.Hot, before.Limited}, After: Totals{after.Hot, after.Limited},
	}
	for _, d := range all {
		if d.Changed {
			c.Changed++
		}
	}
	return c
}

// maxDifferences is the maximal number of keys in the table.
const maxDifferences = 30

// WriteText writes the differences as a table, and the comparison below it.
func (sum *Comparison) WriteText(w io.Writer, all []Difference) error {
	if sum.Changed == 0 {
		fmt.Fprintln(w, "no difference: the same keys are hot for the same time, and the same requests are limited")
	} else {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "LIMITED\tHOT\tRULE\tKEY")
		for _, d := range all[:min(sum.Changed, maxDifferences)] {
			key := d.Key
			if key == "" {
				key = "(all of the rule's requests)"
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\n",
				arrow(strconv.FormatInt(d.Before.Limited, 10), strconv.FormatInt(d.After.Limited, 10)),
				arrow(hotFor(d.Before), hotFor(d.After)), d.Rule, key)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		if more := sum.Changed - maxDifferences; more > 0 {
			fmt.Fprintf(w, "… and %d keys more; --json has them all\n", more)
		}
	}
	_, err := fmt.Fprintf(w, `
%d requests in %s: %s different, %d the same
before  %d hot, %d requests limited (%s)
after   %d hot, %d requests limited (%s)
`,
		sum.Requests, time.Duration(sum.Seconds*float64(time.Second)).Round(time.Second), hotwords.Plural(sum.Changed, "key"), len(all)-sum.Changed,
		sum.Before.Hot, sum.Before.Limited, percent(sum.Before.Limited, sum.Requests),
		sum.After.Hot, sum.After.Limited, percent(sum.After.Limited, sum.Requests))
	return err
}

func arrow(before, after string) string {
	if before == after {
		return before
	}
	return before + " → " + after
}

// hotFor describes how often and how long a key was hot.
func hotFor(o KeyOutcome) string {
	switch o.Hot {
	case 0:
		return "never"
	case 1:
		return hotwords.Seconds(o.Seconds)
	}
	return fmt.Sprintf("%s in %d times", hotwords.Seconds(o.Seconds), o.Hot)
}

func percent(n, total int64) string {
	return strconv.FormatFloat(100*float64(n)/float64(max(1, total)), 'f', 1, 64) + "%"
}
