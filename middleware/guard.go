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
)

// Guard decides on requests. It is safe for concurrent use.
type Guard struct {
	rules   *ruleSet
	counts  *collector.Collector
	hot     *hotkeys.Local[*held]
	locals  *locals
	pool    sync.Pool // of *scratch
	tickets sync.Pool // of *Ticket
	opts    options

	limited, blocked, shadowed, charged, panics atomic.Int64
}

// options are what an [Option] sets.
type options struct {
	route   func(*http.Request) string
	skip    func(*http.Request) bool
	caller  func(*http.Request) string
	limited func(http.ResponseWriter, *http.Request, hotparam.Decision)
	shadow  bool
	noLocal bool
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

// WithCaller takes from f who sends a request, such as the tenant or the API key's
// owner; "": not known. The default is the host of its RemoteAddr, which behind a
// proxy is the proxy. The callers of hot keys leave the process: see
// [hotparam.Attribution].
func WithCaller(f func(*http.Request) string) Option { return func(o *options) { o.caller = f } }

// WithSkip lets requests pass that f picks out, uncounted.
func WithSkip(f func(*http.Request) bool) Option { return func(o *options) { o.skip = f } }

// WithLimited answers a request that was refused. The default is [Refuse].
func WithLimited(f func(http.ResponseWriter, *http.Request, hotparam.Decision)) Option {
	return func(o *options) { o.limited = f }
}

// WithShadow refuses nothing: what would have been refused is counted and
// passes, whatever the rules say.
func WithShadow() Option { return func(o *options) { o.shadow = true } }

// WithoutLocal limits only what is put into [Guard.HotSet]. By default a key that
// reaches its rule's whole threshold on this instance alone is limited here at
// once, before the aggregator has told anybody, and until it has had two seconds
// to agree; while no aggregator answers, until the key cools here.
func WithoutLocal() Option { return func(o *options) { o.noLocal = true } }

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
// goes to counts, which tells it what is hot here and is steered by it: a
// collector has one guard. Keys become hot by what is put into [Guard.HotSet],
// usually by a hotkeys.Watcher, and by what counts tells.
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
		caller:  remoteHost,
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
	g.tickets.New = func() any { return &Ticket{guard: g} }
	g.locals = newLocals(g)
	g.hot = hotkeys.NewLocal(g.hold, hotkeys.LocalConfig[*held]{
		KeepFor: func(h *held) time.Duration { return h.timeToFull(g.opts.clock()) },
		OnSwap: func(version string, hot []hotparam.Hot) {
			g.locals.swapped(hot)
			if g.opts.onSwap != nil {
				g.opts.onSwap(version, hot)
			}
		},
		OnFleet: g.locals.heard,
	})
	counts.OnOrigins(g.tellOrigins)
	if !g.opts.noLocal {
		counts.OnLocal(g.locals.tell)
	}
	return g, nil
}

// HotSet is the set of keys that are hot, to be filled by a watcher.
func (g *Guard) HotSet() *hotkeys.Local[*held] { return g.hot }

// HotKey is a key that is hot, with what this process made of its requests
// since it has been so.
type HotKey struct {
	hotparam.Hot
	Passed, Refused int64
}

// HotKeys are the keys that are hot now, the highest rate first. Those that this
// instance alone has found hot are marked Local.
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
	Blocked  int64 // of these, those with a value that a rule blocks
	Shadowed int64 // requests that would have been refused
	Charged  int64 // requests whose cost was counted when they were done
	Panics   int64 // requests that passed because hotparam panicked
	Overflow int64 // requests that passed a rule without hot for want of room
	Local    int64 // keys that this instance alone found hot
	Refuted  int64 // of these, those that the aggregator did not agree to
	Unmarked int64 // of these, those that were not limited for want of room
}

// Stats tells the counters.
func (g *Guard) Stats() Stats {
	s := Stats{
		Limited:  g.limited.Load(),
		Blocked:  g.blocked.Load(),
		Shadowed: g.shadowed.Load(),
		Charged:  g.charged.Load(),
		Panics:   g.panics.Load(),
	}
	s.Local, s.Refuted = g.locals.stats()
	_, unmarked := g.hot.Marks()
	s.Unmarked = int64(unmarked)
	for i := range g.rules.rules {
		s.Overflow += int64(g.rules.rules[i].overflow())
	}
	return s
}
