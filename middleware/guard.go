package middleware

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/limiter"
)

// Guard decides on requests. It is safe for concurrent use.
type Guard struct {
	rules  *ruleSet
	counts *collector.Collector
	hot    *hotkeys.Local[*held]
	pool   sync.Pool // of *scratch
	opts   options

	limited, shadowed, panics atomic.Int64
}

// options are what an [Option] sets.
type options struct {
	route   func(*http.Request) string
	skip    func(*http.Request) bool
	limited func(http.ResponseWriter, *http.Request, hotparam.Decision)
	shadow  bool
	clock   func() time.Duration
	maxKeys int
	onSwap  func(version string, hot []hotparam.Hot)
}

// Option changes how a [Guard] works.
type Option func(*options)

// WithMux takes a request's route from the mux that will serve it. It is not
// needed where the mux itself is wrapped, nor around a single handler inside a
// mux, where the request knows its pattern.
func WithMux(mux *http.ServeMux) Option {
	return WithRoute(func(r *http.Request) string {
		if r.Method == http.MethodConnect {
			return "" // a mux may answer with the client's own path
		}
		_, pattern := mux.Handler(r)
		return pattern
	})
}

// WithRoute takes a request's route from f: a pattern in the manner of
// http.ServeMux, or "" for one that is not known.
func WithRoute(f func(*http.Request) string) Option { return func(o *options) { o.route = f } }

// WithSkip lets requests pass that f picks out, uncounted.
func WithSkip(f func(*http.Request) bool) Option { return func(o *options) { o.skip = f } }

// WithLimited answers a request that was refused. The default is [Refuse].
func WithLimited(f func(http.ResponseWriter, *http.Request, hotparam.Decision)) Option {
	return func(o *options) { o.limited = f }
}

// WithShadow refuses nothing: what would have been refused is counted and
// passes, whatever the rules say.
func WithShadow() Option { return func(o *options) { o.shadow = true } }

// WithClock gives the time that limits are reckoned by: monotonic, since any
// fixed instant.
func WithClock(now func() time.Duration) Option { return func(o *options) { o.clock = now } }

// DefaultMaxKeys is how many keys a rule without hot holds at a time.
const DefaultMaxKeys = 1 << 16

// WithMaxKeys bounds how many keys each rule without hot holds at a time.
func WithMaxKeys(n int) Option { return func(o *options) { o.maxKeys = n } }

// WithOnSwap calls f each time that another set of hot keys has come into force
// in this process. It must be quick, and must not keep or change the slice.
func WithOnSwap(f func(version string, hot []hotparam.Hot)) Option {
	return func(o *options) { o.onSwap = f }
}

// New makes a guard for rules, which must not change afterwards. What it counts
// goes to counts; keys become hot by what is put into [Guard.HotSet], usually
// by a hotkeys.Watcher.
func New(rules *hotparam.Rules, counts *collector.Collector, opts ...Option) (*Guard, error) {
	if rules == nil || counts == nil {
		return nil, errors.New("middleware: New needs rules and a collector")
	}
	if err := rules.Validate(); err != nil {
		return nil, fmt.Errorf("middleware: %w", err)
	}
	start := time.Now()
	g := &Guard{counts: counts, opts: options{
		limited: Refuse,
		clock:   func() time.Duration { return time.Since(start) },
		maxKeys: DefaultMaxKeys,
	}}
	for _, o := range opts {
		o(&g.opts)
	}
	set, err := compile(rules, g.opts.maxKeys)
	if err != nil {
		return nil, fmt.Errorf("middleware: %w", err)
	}
	g.rules = set
	g.pool.New = func() any { return new(scratch) }
	g.hot = hotkeys.NewLocal(g.hold, hotkeys.LocalConfig[*held]{
		KeepFor: func(h *held) time.Duration { return h.timeToFull(g.opts.clock()) },
		OnSwap:  g.opts.onSwap,
	})
	return g, nil
}

// held is what the request path keeps for a hot key.
type held struct {
	bucket          *limiter.TokenBucket // nil: watched only
	passed, refused atomic.Int64
}

// hold makes what a key that became hot is held to: by the rule as this process
// knows it. A key that stays hot, or comes back soon, keeps what it had.
func (g *Guard) hold(h hotparam.Hot, old *held, had bool) *held {
	if had {
		return old
	}
	fresh := &held{}
	if rule := g.rules.byID(h.Rule); rule != nil && rule.Limit != nil {
		// compile made one of the same rate and burst.
		fresh.bucket, _ = limiter.NewTokenBucket(rule.Limit.Rate, rule.Limit.Burst)
	}
	return fresh
}

func (h *held) timeToFull(now time.Duration) time.Duration {
	if h.bucket == nil {
		return 0
	}
	return h.bucket.TimeToFull(now)
}

// HotSet is the set of keys that are hot, to be filled by a watcher.
func (g *Guard) HotSet() *hotkeys.Local[*held] { return g.hot }

// HotKey is a key that is hot, with what this process made of its requests
// since it has been so.
type HotKey struct {
	hotparam.Hot
	Passed, Refused int64
}

// HotKeys are the keys that are hot now, the highest rate first.
func (g *Guard) HotKeys() []HotKey {
	var keys []HotKey
	for _, h := range g.hot.All() {
		key := HotKey{Hot: h}
		member := []byte(h.Key.String())
		if entry := g.hot.Lookup(hotparam.Hash(member), member); entry != nil {
			key.Passed, key.Refused = entry.Payload.passed.Load(), entry.Payload.refused.Load()
		}
		keys = append(keys, key)
	}
	return keys
}

// Stats are a guard's counters since it was made.
type Stats struct {
	Limited  int64 // requests that were refused
	Shadowed int64 // requests that would have been refused
	Panics   int64 // requests that passed because hotparam panicked
	Overflow int64 // requests that passed a rule without hot for want of room
}

// Stats tells the counters.
func (g *Guard) Stats() Stats {
	s := Stats{Limited: g.limited.Load(), Shadowed: g.shadowed.Load(), Panics: g.panics.Load()}
	for i := range g.rules.rules {
		if k := g.rules.rules[i].keyed; k != nil {
			s.Overflow += int64(k.Stats().Overflow)
		}
	}
	return s
}
