package hotparam

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/config/rulesfile"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// mismatch compares the contents of Redis with the file. It logs each difference once, with
// its remedy: the file's namespace has no published set, the aggregator does not know this
// instance, or it has other rules. While Redis is unavailable it logs nothing, since the
// watcher does. If counts are lost in transit, it can only log that they do not arrive: Redis
// has neither the prefix that an aggregator expects nor the version of its rules.
type mismatch struct {
	client    redis.UniversalClient
	log       *slog.Logger
	namespace string
	name      string // the instance's name; empty if the aggregator does not learn it
	hotKeys   func() []middleware.HotKey
	rules     func() *rules.Rules // the rules in force
	every     time.Duration

	silent, unheard, unknown    int // consecutive looks that found so
	loggedSilent, loggedUnheard bool
	toldUnknown, cannotBeLooked bool
}

// Looks are rare, since a mismatch lasts. Each look is one small pipeline.
const (
	lookEvery   = 5 * time.Second
	lookTimeout = time.Second
	// patience is the number of consecutive looks that must agree, since an aggregator that
	// starts needs time.
	patience = 2
)

func newMismatch(client redis.UniversalClient, log *slog.Logger, guard *middleware.Guard, file *rulesfile.Follower, name string) *mismatch {
	m := &mismatch{
		client: client, log: log, namespace: file.Rules().Namespace, every: lookEvery,
		hotKeys: guard.HotKeys, rules: file.Rules,
	}
	// Names do not arrive by Graphite or by a StatsD server that is not ours.
	if a := file.Start.Aggregator.WithDefaults(); a.Source == config.SourceKafka || *file.Start.StatsD.WithDefaults(a).Meta {
		m.name = name
	}
	return m
}

// run looks until ctx ends.
func (m *mismatch) run(ctx context.Context) error {
	ticker := time.NewTicker(m.every)
	defer ticker.Stop()
	for !m.cannotBeLooked {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			m.check(ctx)
		}
	}
	return nil
}

// detects reports whether a rule in force has a threshold, so there should be an aggregator.
func (m *mismatch) detects() bool {
	return slices.ContainsFunc(m.rules().Rules, func(r rules.Rule) bool { return len(r.Hot) > 0 })
}

// check compares once. It does nothing while no rule has a threshold.
func (m *mismatch) check(ctx context.Context) {
	if !m.detects() {
		m.silent, m.unheard, m.unknown = 0, 0, 0
		return
	}
	publishes, lists, err := m.aggregatorState(ctx)
	switch {
	case redis.HasErrorPrefix(err, "NOPERM"):
		m.cannotBeLooked = true
		return
	case err != nil:
		return
	}
	m.silent, m.unheard = count(m.silent, !publishes), count(m.unheard, publishes && !lists && m.name != "")
	switch {
	case m.silent >= patience && !m.loggedSilent:
		m.loggedSilent = true
		m.log.Warn("no aggregator publishes hot keys for this namespace: start one with the same file, or correct namespace or aggregator.redis; until then this instance limits keys by its own count alone",
			"namespace", m.namespace, "there are", m.namespaces(ctx))
	case publishes && m.loggedSilent:
		m.loggedSilent = false
		m.log.Info("an aggregator publishes hot keys for this namespace now", "namespace", m.namespace)
	case m.unheard >= patience && !m.loggedUnheard:
		m.loggedUnheard = true
		m.log.Warn("counts of this instance do not reach an aggregator: statsd.addresses, or kafka, must lead to one with this namespace; its file may also refuse unsigned counts or unlisted senders",
			"namespace", m.namespace, "instance", m.name)
	case lists && m.loggedUnheard:
		m.loggedUnheard = false
		m.log.Info("counts of this instance reach the aggregator now", "instance", m.name)
	}
	m.compareRules()
}

// count returns the number of consecutive looks that have found something: n+1 or 0.
func count(n int, found bool) int {
	if !found {
		return 0
	}
	return n + 1
}

// aggregatorState reports whether an aggregator publishes for the namespace, and whether it
// lists this instance among the senders of counts.
func (m *mismatch) aggregatorState(ctx context.Context) (publishes, lists bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	layout := published.NewLayout(m.namespace)
	var beat *redis.DurationCmd
	var heard *redis.FloatCmd
	_, err = m.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		beat = p.PTTL(ctx, layout.Beat)
		heard = p.ZScore(ctx, layout.Instances, m.name)
		return nil
	})
	if lists = heard.Err() == nil; errors.Is(heard.Err(), redis.Nil) {
		err = beat.Err()
	}
	return beat.Val() > 0, lists, err
}

// compareRules logs if keys are hot by rules that the file does not have. That is normal for
// a moment while a changed file reaches the instances.
func (m *mismatch) compareRules() {
	var unknown []string
	ruleset := m.rules()
	for _, h := range m.hotKeys() {
		has := func(r rules.Rule) bool { return r.ID == h.Key.Rule }
		if len(unknown) < 5 && !slices.ContainsFunc(ruleset.Rules, has) && !slices.Contains(unknown, h.Key.Rule) {
			unknown = append(unknown, h.Key.Rule)
		}
	}
	m.unknown = count(m.unknown, len(unknown) > 0)
	switch {
	case m.unknown >= patience && !m.toldUnknown:
		m.toldUnknown = true
		m.log.Warn("keys are hot by rules that this file does not have, so they are not limited here: the aggregator has other rules; give all the same file",
			"namespace", m.namespace, "rules", unknown, "version", ruleset.Version)
	case m.unknown == 0 && m.toldUnknown:
		m.toldUnknown = false
		m.log.Info("all hot keys now belong to rules of this file", "namespace", m.namespace)
	}
}

// namespaces returns the namespaces that an aggregator publishes for. It returns none if the
// user of Redis may not use SCAN.
func (m *mismatch) namespaces(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	found, _ := hotkeys.ListNamespaces(ctx, m.client) // the namespaces found before an error are still of use
	return found
}
