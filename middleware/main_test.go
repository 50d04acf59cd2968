package middleware

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/hotset"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tallySink is a sink that adds up its counts.
type tallySink struct {
	collector.CountsOnly
	mu      sync.Mutex
	counts  map[string]int64
	discard bool                // keep nothing
	fit     func([]byte) []byte // shortens a text; nil leaves all as they are
}

func (s *tallySink) Send(_ context.Context, _ collector.Flush, counts []collector.Count) collector.Sent {
	if s.discard {
		return collector.Sent{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = make(map[string]int64)
	}
	for _, c := range counts {
		s.counts[string(c.Rule)+" "+string(c.Text)] += c.N
	}
	return collector.Sent{Lines: int64(len(counts))}
}

func (s *tallySink) Fit(text []byte) []byte {
	if s.fit == nil {
		return text
	}
	return s.fit(text)
}

func (s *tallySink) Close() error { return nil }

// fixture is a guard whose counts can be inspected and whose clock can be set.
type fixture struct {
	*Guard
	sink   *tallySink
	counts *collector.Collector
	now    time.Duration
}

// tester is the common interface of tests, benchmarks and properties.
type tester interface {
	Helper()
	Fatal(...any)
}

func newFixture(tb tester, rules rules.Rules, opts ...Option) *fixture {
	tb.Helper()
	return newFixtureOf(tb, rules, collector.Config{}, opts...)
}

func newFixtureOf(tb tester, rules rules.Rules, counts collector.Config, opts ...Option) *fixture {
	tb.Helper()
	if rules.Namespace == "" {
		rules.Namespace = "test"
	}
	f := &fixture{sink: &tallySink{}, now: time.Hour}
	var err error
	counts.Sink = f.sink
	if counts.MaxKeys == 0 {
		counts.MaxKeys = 1 << 12 // large tables take longer to make than most tests
	}
	if f.counts, err = collector.New(counts); err != nil {
		tb.Fatal(err)
	}
	opts = append([]Option{WithClock(func() time.Duration { return f.now })}, opts...)
	if f.Guard, err = New(&rules, f.counts, opts...); err != nil {
		tb.Fatal(err)
	}
	return f
}

// keyCounts returns the counts of keys since the last flush, and totalCounts those of route totals.
func (f *fixture) keyCounts() map[string]int64 {
	return f.flushed(func(key rules.Key) bool { return !base.IsTotal([]byte(key.Text)) })
}

func (f *fixture) totalCounts() map[string]int64 {
	return f.flushed(func(key rules.Key) bool { return base.IsTotal([]byte(key.Text)) })
}

func (f *fixture) flushed(wanted func(rules.Key) bool) map[string]int64 {
	f.counts.Flush(context.Background(), time.Unix(0, 0))
	f.sink.mu.Lock()
	defer f.sink.mu.Unlock()
	counts := f.sink.counts
	f.sink.counts = nil
	maps.DeleteFunc(counts, func(member string, _ int64) bool {
		key, ok := rules.ParseKey(member)
		return !ok || !wanted(key)
	})
	return counts
}

func (f *fixture) keys() []string { return slices.Sorted(maps.Keys(f.keyCounts())) }

// heat makes exactly these members ("rule text") hot.
func (f *fixture) heat(tb testing.TB, members ...string) {
	tb.Helper()
	hot := make([]published.Hot, len(members))
	for i, m := range members {
		key, ok := rules.ParseKey(m)
		if !ok {
			tb.Fatalf("%q is no member", m)
		}
		hot[i] = published.Hot{Key: key, Low: 1, High: 1, Rate: 1, Mode: rules.ModeLimit}
	}
	replaceHot(f.hot, "", hot)
}

// replaceHot makes hot the published keys.
func replaceHot(set *hotset.Set[*hotState], version string, hot []published.Hot) {
	change := published.Change{Hot: hot}
	for _, h := range set.All() {
		if !slices.ContainsFunc(hot, func(now published.Hot) bool { return now.Key == h.Key }) {
			change.Cool = append(change.Cool, h)
		}
	}
	set.Update(version, change)
}

func parse(tb testing.TB, s string) rules.Route {
	tb.Helper()
	r, err := rules.ParseRoute(s)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// byNames parses names as in rules files: "q", "path:id".
func byNames(names ...string) rules.By {
	by := rules.By{Kind: rules.ByNames}
	for _, s := range names {
		p := rules.Param{Name: s}
		if word, name, found := strings.Cut(s, ":"); found {
			p.Source, _ = rules.ParseSource(word)
			p.Name = name
		}
		by.Names = append(by.Names, p)
	}
	return by
}

var (
	byAll  = rules.By{Kind: rules.ByAll}
	byEach = rules.By{Kind: rules.ByEach}
)

// hotRule returns a rule that counts keys. With a perHour of 0 it does not limit.
func hotRule(tb testing.TB, id, pattern string, by rules.By, perHour, burst int64) rules.Rule {
	r := rules.Rule{
		ID: id, Match: rules.Match{Route: parse(tb, pattern)}, By: by,
		Hot: []rules.Threshold{rules.NewThreshold(rules.Rate{N: 100, Per: time.Second})},
	}
	if perHour > 0 {
		r.Limit = limit(perHour, burst)
	}
	return r
}

func limit(perHour, burst int64) *rules.Limit {
	return &rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: perHour, Per: time.Hour}, Burst: burst}, Mode: rules.ModeLimit}
}

// limitRule returns a rule that limits every matching request.
func limitRule(tb testing.TB, id, pattern string, by rules.By, perHour, burst int64) rules.Rule {
	return rules.Rule{ID: id, Match: rules.Match{Route: parse(tb, pattern)}, By: by, Limit: limit(perHour, burst)}
}

func ignoreRule(tb testing.TB, id, pattern string) rules.Rule {
	return rules.Rule{ID: id, Match: rules.Match{Route: parse(tb, pattern)}, Ignore: true}
}

func get(pattern, path, query string) Request {
	return Request{Method: "GET", Path: path, Query: query, Pattern: pattern}
}
