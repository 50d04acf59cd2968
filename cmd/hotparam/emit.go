package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/cmd/internal/daemon"
	"github.com/hotparam/hotparam/cmd/internal/termtext"
	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/keytext"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// emission holds the flags of `hotparam emit`.
type emission struct {
	config, rule, instance string
	over                   time.Duration
}

func newEmit(s streams) *cobra.Command {
	var e emission
	cmd := &cobra.Command{
		Use:   "emit --config FILE KEY [N]",
		Short: "Send counts of a key as an instance does, to test a setup",
		Long: `Send N counts of a key (default 1) as instances do: as StatsD lines or to Kafka, as the
file says. Use it to check that counts arrive and that a hot key is limited. Write the
key as list prints it.

The counts are real: with enough of them the key becomes hot and is limited.`,
		Example: `  hotparam emit --config hotparam.yaml 'GET /search?q=phone' 500
  hotparam emit --config hotparam.yaml 'GET /search?q=phone' 5000 --over 10s   # 500 a second
  hotparam emit --config hotparam.yaml --rule search-terms 'GET /search?q=phone'
  hotparam list --config hotparam.yaml                                         # then look`,
		Args: args("KEY", "[N]"),
		RunE: func(cmd *cobra.Command, args []string) error { return e.run(cmd.Context(), s, args) },
	}
	f := cmd.Flags()
	f.StringVar(&e.config, "config", "", "rules `file`, with the destination of counts")
	f.StringVar(&e.rule, "rule", "", "`id` of the rule, if several make such keys")
	f.StringVar(&e.instance, "instance", "hotparam-emit", "`name` of the sender in the aggregator's lists")
	durationVar(f, &e.over, "over", 0, "spread the counts over this `duration`, at most 1h (default all at once)")
	return cmd
}

// maxEmitted bounds the counts, so that a typing error does not fill a window for long.
const maxEmitted = 100_000_000

func (e *emission) run(ctx context.Context, s streams, args []string) error {
	n := int64(1)
	if len(args) == 2 {
		var err error
		if n, err = strconv.ParseInt(args[1], 10, 64); err != nil || n < 1 || n > maxEmitted {
			return usageError(fmt.Errorf("%q: want a whole number N of 1 to %d", args[1], maxEmitted))
		}
	}
	switch {
	case e.config == "":
		return usageError(errors.New("--config is missing: it has the destination of counts"))
	case e.over < 0 || e.over > time.Hour:
		return usageError(fmt.Errorf("--over %v: want at most 1h", e.over))
	case !wire.ValidInstance(e.instance):
		return usageError(fmt.Errorf("--instance %q: want 1 to %d of A-Z a-z 0-9 _ . -", e.instance, wire.MaxInstance))
	}
	file, err := loadConfig(s.err, e.config)
	if err != nil {
		return err
	}
	key, err := findKey(file.Rules, e.rule, args[0])
	if err != nil {
		return usageError(err)
	}
	sent, err := e.send(ctx, s.err, file, key, n)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.err, "sent %d of %d counts of %s by rule %s: %s\n", sent.Counts, n, printable(key.Text), key.Rule, daemon.TransportWords(file))
	if sent.Counts < n {
		return unreachableError(fmt.Errorf("%d counts could not be sent; hotparam doctor --config %s finds the reason", n-sent.Counts, e.config))
	}
	rule := ruleByID(file.Rules, key.Rule)
	fmt.Fprintf(s.err, "The rule: %s\n", printable(hotwords.Rule(rule)))
	if file.Aggregator.Source != config.SourceKafka && sent.Counts == n {
		fmt.Fprintln(s.err, "UDP is not acknowledged. Check that the counts arrived:")
	}
	fmt.Fprintf(s.err, "See it:   hotparam list --config %[1]s   and   hotparam list --instances --config %[1]s\n", e.config)
	return nil
}

// send sends the counts, and returns the collector's statistics.
func (e *emission) send(ctx context.Context, w io.Writer, file *config.File, key rules.Key, n int64) (collector.Stats, error) {
	none := collector.Stats{}
	log := slog.New(slog.NewTextHandler(termtext.NewEscapingWriter(w), &slog.HandlerOptions{Level: slog.LevelWarn}))
	signing, err := file.Aggregator.SigningKey()
	if err != nil {
		return none, configError(err)
	}
	transport, err := hotparam.OpenTransport(hotparam.TransportConfig{File: file, Instance: e.instance, Key: signing, Log: log})
	if err != nil {
		return none, configError(err)
	}
	counts, err := collector.New(collector.Config{Sink: transport.Sink, Rules: file.Rules, Log: log})
	if err != nil {
		return none, errors.Join(err, transport.Sink.Close())
	}
	// The collector outlives ctx, so that it still sends the added counts.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- counts.Run(running) }()
	err = checkTransport(ctx, transport)
	if err == nil {
		e.add(ctx, counts, key, n)
		e.awaitSent(ctx, counts, n)
	}
	stop()
	return counts.Stats(), errors.Join(err, <-done)
}

// checkTransport returns an error if counts cannot arrive.
func checkTransport(ctx context.Context, transport hotparam.Transport) error {
	if transport.Check == nil {
		return nil
	}
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := transport.Check(ctx); err != nil {
		return unreachableError(fmt.Errorf("counts do not arrive: %w", err))
	}
	return nil
}

// add adds the counts, all at once or in steps over e.over.
func (e *emission) add(ctx context.Context, counts *collector.Collector, key rules.Key, n int64) {
	const step = 20 * time.Millisecond
	member := []byte(key.Rule + " ")
	member = append(member, counts.Fit([]byte(key.Text))...)
	hash := rules.Hash(member)
	start := time.Now()
	ticker := time.NewTicker(step)
	defer ticker.Stop()
	for added := int64(0); added < n; {
		due := n
		if e.over > 0 {
			due = min(n, int64(float64(n)*float64(time.Since(start)+step)/float64(e.over)))
		}
		if due > added {
			counts.Add(hash, member, uint64(due-added))
			added = due
		}
		if added == n {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// awaitSent waits until the counts have been sent or dropped, but for a few seconds at most.
func (e *emission) awaitSent(ctx context.Context, counts *collector.Collector, n int64) {
	const patience, step = 5 * time.Second, 10 * time.Millisecond
	for end := time.Now().Add(patience); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(step) {
		s := counts.Stats()
		if s.Counts+s.Dropped.TooLong+s.Dropped.SendError+s.Dropped.TableFull >= n {
			return
		}
	}
}

// findKey returns the key that text names: "rule key", or a key alone if exactly one rule makes
// it.
func findKey(ruleset *rules.Rules, id, text string) (rules.Key, error) {
	if id == "" {
		if key, ok := rules.ParseKey(text); ok && ruleByID(ruleset, key.Rule) != nil {
			id, text = key.Rule, key.Text
		}
	}
	var makes []string
	for i := range ruleset.Rules {
		rule := &ruleset.Rules[i]
		switch {
		case id != "" && rule.ID != id:
		case len(rule.Hot) == 0:
			if id != "" {
				return rules.Key{}, fmt.Errorf("rule %s has no hot, so its keys are not counted", id)
			}
		case id != "" || makesKey(rule, text):
			makes = append(makes, rule.ID)
		}
	}
	switch {
	case len(makes) == 1:
		return rules.Key{Rule: makes[0], Text: canonicalText(ruleByID(ruleset, makes[0]), text)}, nil
	case len(makes) > 1:
		return rules.Key{}, fmt.Errorf("KEY %q: rules %s make such keys: choose one by --rule", text, strings.Join(makes, ", "))
	case id != "":
		return rules.Key{}, fmt.Errorf("--rule %q: the file has no such rule", id)
	}
	return rules.Key{}, fmt.Errorf("KEY %q: no rule with hot makes such a key; write it as list prints it, such as 'GET /search?q=phone'; hotparam rules explain shows the keys of a request", text)
}

func ruleByID(rules *rules.Rules, id string) *rules.Rule {
	for i := range rules.Rules {
		if rules.Rules[i].ID == id {
			return &rules.Rules[i]
		}
	}
	return nil
}

// canonicalText returns the text of a key in the form that is counted.
func canonicalText(rule *rules.Rule, text string) string {
	if canonical, changed := keytext.NewCanonicalizer(rule).Append(nil, []byte(text)); changed {
		return string(canonical)
	}
	return text
}
