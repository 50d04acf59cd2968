package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hotparam/hotparam/cmd/internal/replay"
	"github.com/hotparam/hotparam/rules"
)

// explain writes the reasons why a key was hot or not.
func (r *replayRun) explain(ctx context.Context) error {
	var all []replay.Explanation
	_, err := r.replay(ctx, replay.Config{
		Rules: r.rules, Explain: r.keyToExplain(), OnExplained: func(x replay.Explanation) { all = append(all, x) },
	}, newProgress(r.streams), true)
	if missing := (*replay.NoSuchKey)(nil); errors.As(err, &missing) {
		return noSuchKey(missing, r.rules)
	}
	if err != nil {
		return err
	}
	out := bufio.NewWriter(r.out)
	for i := range all {
		if r.json {
			err = newJSON(out).Encode(&all[i])
		} else {
			if i > 0 {
				fmt.Fprintln(out)
			}
			err = all[i].WriteText(out)
		}
		if err != nil {
			return err
		}
	}
	return out.Flush()
}

// keyToExplain returns the key, with its rule if the first word is the id of one.
func (r *replayRun) keyToExplain() rules.Key {
	if key, ok := rules.ParseKey(r.replayFlags.explain); ok && ruleByID(r.rules, key.Rule) != nil {
		return key
	}
	return rules.Key{Text: r.replayFlags.explain}
}

// noSuchKey returns an error that lists the keys nearest to the missing one.
func noSuchKey(e *replay.NoSuchKey, rules *rules.Rules) error {
	if len(e.Nearest) == 0 {
		return fmt.Errorf("%w; no request of the log made any key", e)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%v; the nearest are:", e)
	for _, key := range e.Nearest {
		name := key.Text
		if len(rules.Rules) > 1 {
			name = key.String()
		}
		b.WriteString("\n  " + name)
	}
	return errors.New(b.String())
}
