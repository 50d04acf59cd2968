package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/replay"
	"github.com/hotparam/hotparam/rules"
)

// comparison is the last line of `replay --what-if --json`.
type comparison struct {
	Event    string  `json:"event"` // "summary"
	Requests int64   `json:"requests"`
	Skipped  int64   `json:"skipped"`
	Seconds  float64 `json:"seconds"`
	Changed  int     `json:"changed"` // number of keys
	Before   totals  `json:"before"`
	After    totals  `json:"after"`
}

// totals are the results of one version of the rules.
type totals struct {
	Hot     int64 `json:"hot"`     // keys that were hot at least once
	Limited int64 `json:"limited"` // number of requests
}

// whatIf compares two versions of the rules on the same log.
func (r *replayRun) whatIf(ctx context.Context) error {
	if slices.Contains(r.files, "-") {
		return usageError(errors.New("--what-if reads the log twice, which standard input cannot be; save it to a file first"))
	}
	file, err := loadConfig(r.err, r.replayFlags.whatIf)
	if err != nil {
		return err
	}
	before, old, err := r.outcome(ctx, r.rules, true)
	if err != nil {
		return err
	}
	after, changed, err := r.outcome(ctx, file.Rules, false)
	if err != nil {
		return err
	}
	all := replay.Compare(old, changed)
	sum := comparison{
		Event: "summary", Requests: before.Requests, Skipped: before.Skipped, Seconds: before.Seconds,
		Before: totals{before.Hot, before.Limited}, After: totals{after.Hot, after.Limited},
	}
	for _, d := range all {
		if d.Changed {
			sum.Changed++
		}
	}
	out := bufio.NewWriter(r.out)
	if r.json {
		enc := newJSON(out)
		for _, d := range all {
			if err := enc.Encode(d); err != nil {
				return err
			}
		}
		return errors.Join(enc.Encode(sum), out.Flush())
	}
	return errors.Join(differences(out, all, sum), out.Flush())
}

// outcome returns the results of replaying the log with one version of the rules.
func (r *replayRun) outcome(ctx context.Context, rules *rules.Rules, remarks bool) (replay.Summary, []replay.KeyReport, error) {
	var keys []replay.KeyReport
	summary, err := r.replay(ctx, replay.Config{
		Rules: rules, OnKey: func(k replay.KeyReport) { keys = append(keys, k) },
	}, newProgress(r.streams), remarks)
	return summary, keys, err
}

// maxDifferences is the maximal number of keys in the table.
const maxDifferences = 30

func differences(w io.Writer, all []replay.Difference, sum comparison) error {
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
func hotFor(o replay.KeyOutcome) string {
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
