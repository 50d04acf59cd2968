package middleware

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/hotset"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/rules"
)

// New returns a guard for rules, which must not change afterwards. The guard counts with
// counts, steers it, and sets its functions, so a collector can have only one guard. Keys
// become hot when they are written to [Guard.HotSet], usually by a hotkeys.Watcher, or when
// counts reports them.
//
// With a nil counts the guard only limits: it counts nothing, and no rule may have hot. See
// [Limit] for such a guard in one call.
func New(ruleset *rules.Rules, counts *collector.Collector, opts ...Option) (*Guard, error) {
	if ruleset == nil {
		return nil, errors.New("middleware: New needs rules")
	}
	g := &Guard{counts: counts, decisions: make(map[string]*decisionCounts), former: formerLimits{specs: make(map[string]*limitSpec)}, opts: options{
		caller:     remoteHost,
		clock:      sinceEpoch(time.Now()),
		serve:      make(map[string]handlerFunc),
		matchers:   make(map[string]matcher),
		algorithms: make(map[rules.Algorithm]limiter.Algorithm),
	}}
	for _, o := range opts {
		o(&g.opts)
	}
	ruleset = g.opts.withClient(ruleset)
	if err := ruleset.Validate(); err != nil {
		return nil, fmt.Errorf("middleware: %w", err)
	}
	if g.opts.log == nil {
		g.opts.log = slog.New(slog.DiscardHandler)
	}
	g.concrete.log = g.opts.log
	g.maxKeys = cmp.Or(g.opts.maxKeys, ruleset.LimitKeys, rules.DefaultLimitKeys)
	if err := g.newBackends(); err != nil {
		return nil, fmt.Errorf("middleware: %w", err)
	}
	g.heldPermits = semaphore.New(semaphore.Config{})
	if err := g.install(ruleset, nil); err != nil {
		return nil, fmt.Errorf("middleware: %w", err)
	}
	g.running.init()
	var made, tickets atomic.Uint32
	g.requests.New = func() any {
		return &request{guard: g, reading: reading{absent: &g.absent, bodies: &g.bodies}, verdict: allowed, shard: made.Add(1)}
	}
	g.tickets.New = func() any {
		t := &Ticket{guard: g}
		t.place = runningPlace{of: t, shard: tickets.Add(1) % runningShards}
		return t
	}
	g.localHot = newLocalHot(counts)
	g.hot = hotset.New(g.newHotState, hotset.Config[*hotState]{
		KeepFor: func(h *hotState) time.Duration { return h.timeToFull(g.opts.clock()) },
		OnSwap: func(version string, hot []published.Hot) {
			g.localHot.updatePublished(hot)
			g.noteHot(len(hot) > 0)
			if g.opts.onSwap != nil {
				g.opts.onSwap(version, g.hotKeys(hot))
			}
		},
		OnFleet: g.localHot.updateFleet,
	})
	g.localHot.hot = g.hot
	if counts != nil {
		counts.OnOrigins(g.yieldOrigins)
		counts.OnUsage(g.yieldUsage)
		if !g.opts.noLocal {
			counts.OnLocal(g.localHot.set)
		}
	}
	return g, nil
}

// sinceEpoch returns a monotonic clock of the time since the Unix epoch.
func sinceEpoch(start time.Time) func() time.Duration {
	return func() time.Duration { return time.Duration(start.UnixNano()) + time.Since(start) }
}

// remoteHost returns the host of the request's RemoteAddr.
func remoteHost(r *http.Request) string {
	colon := strings.LastIndexByte(r.RemoteAddr, ':')
	if colon < 0 {
		return r.RemoteAddr
	}
	return strings.Trim(r.RemoteAddr[:colon], "[]")
}
