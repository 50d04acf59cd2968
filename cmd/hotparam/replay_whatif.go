package main

import (
	"bufio"
	"context"
	"errors"
	"slices"

	"github.com/hotparam/hotparam/cmd/internal/replay"
	"github.com/hotparam/hotparam/rules"
)

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
	sum := replay.Sum(before, after, all)
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
	return errors.Join(sum.WriteText(out, all), out.Flush())
}

// outcome returns the results of replaying the log with one version of the rules.
func (r *replayRun) outcome(ctx context.Context, rules *rules.Rules, remarks bool) (replay.Summary, []replay.KeyReport, error) {
	var keys []replay.KeyReport
	summary, err := r.replay(ctx, replay.Config{
		Rules: rules, OnKey: func(k replay.KeyReport) { keys = append(keys, k) },
	}, newProgress(r.streams), remarks)
	return summary, keys, err
}
