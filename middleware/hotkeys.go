package middleware

import (
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/hotset"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// HotSet returns the writing side of the guard's set of hot keys, for a hotkeys.Watcher.
func (g *Guard) HotSet() hotset.Writer { return g.hot }

// HotKey is a hot key, and what became of its requests in this process since it became hot.
type HotKey struct {
	rules.Key
	Cause string // the threshold in a few words: "200/s", "20%/1m" of the route, "8x/1m" over the baseline
	// Low and High bound the key's count in the window of that threshold. High is -1 if counts were
	// lost on the way and no bound is known.
	Low, High int64
	Rate      float64 // recent rate per second, in the unit of the rule
	// Limit and Burst are the rule's limit of a hot key. Zero means that the key is only watched.
	Limit rules.Rate
	Burst int64
	Mode  rules.Mode
	Scope rules.Scope // empty means [rules.ScopeInstance]
	// Since is when the count reached the threshold. Until is when the key cools unless the
	// aggregator renews it.
	Since, Until time.Time
	Local        bool // found hot by this process alone
	Spared       bool // not limited, since the count is usual for the key
	Pinned       bool // held to its limit by an operator

	Passed, Refused int64
	OnHot           OnHotCounts // in neither Passed nor Refused, apart from those in Alone
}

// OnHotCounts count the requests of a hot key whose rule has on_hot.
type OnHotCounts struct {
	Stored, Joined int64 // answered from memory, and by the answer to an identical request under way
	Alone          int64 // not for sharing: answered as without on_hot
	// AloneFor is the reason of the last request in Alone, such as "set-cookie", or empty.
	AloneFor string
}

// HotKeys returns the keys that are hot now, the highest rate first.
func (g *Guard) HotKeys() []HotKey { return g.hotKeys(g.hot.All()) }

func (g *Guard) hotKeys(hot []published.Hot) []HotKey {
	var keys []HotKey
	for i := range hot {
		h := &hot[i]
		key := HotKey{
			Key: h.Key, Cause: h.Cause.String(), Low: h.Low, High: h.High, Rate: h.Rate, Limit: h.Limit, Burst: h.Burst, Mode: h.Mode, Scope: h.Scope,
			Since: h.Since, Until: h.Until, Local: h.Local, Spared: h.Spared, Pinned: h.Pinned,
		}
		if state := g.stateOf(h.Key); state != nil {
			key.Passed, key.Refused, key.OnHot = state.passed.Load(), state.refused.Load(), OnHotCounts(state.onHot())
		}
		keys = append(keys, key)
	}
	return keys
}

// stateOf returns the state of a hot key, or nil if it has cooled.
func (g *Guard) stateOf(k rules.Key) *hotState {
	member := []byte(k.String())
	if entry := g.hot.Lookup(rules.Hash(member), member); entry != nil {
		return entry.Payload
	}
	return nil
}

// newHotState returns the key's old state if it exists, or a new one with a bucket by this
// process's rules.
func (g *Guard) newHotState(h published.Hot, old *hotState, exists bool) *hotState {
	if !exists {
		old = g.firstHotState(&h)
	}
	old.beginHeat(&h)
	return old
}

// firstHotState returns the state of a key that has none in the hot set.
func (g *Guard) firstHotState(h *published.Hot) *hotState {
	r := g.rules.Load().byID(h.Rule)
	if r != nil && r.heated != nil {
		if state := r.heated[h.Key.String()]; state != nil {
			return state // from when another version of the rule had hot
		}
	}
	fresh := &hotState{id: limiter.KeyID([]byte(h.Key.String())), made: time.Now()}
	if r != nil && r.except == nil && r.spec.limit != nil {
		fresh.bucketFor(r.spec, g.opts.clock) // makes the bucket, ahead of the first request
	}
	return fresh
}

// noteHot records whether some key is hot now.
func (g *Guard) noteHot(some bool) {
	if some || g.someHot.Load() {
		g.lastHot.Store(time.Now().UnixNano())
	}
	g.someHot.Store(some)
}

// yieldOrigins calls yield for each origin of hot keys, beginning with the hottest key, until
// yield returns false.
func (g *Guard) yieldOrigins(yield func(collector.KeyOrigin) bool) {
	for _, h := range g.hot.All() {
		state := g.stateOf(h.Key)
		if state == nil {
			continue
		}
		o := collector.KeyOrigin{Rule: []byte(h.Rule), Text: []byte(h.Text)}
		more := state.origins.Drain(func(kind wire.OriginKind, name []byte, n int64) bool {
			o.Kind, o.Name, o.N = kind, append([]byte(nil), name...), n
			return yield(o)
		})
		if !more {
			return
		}
	}
}

// yieldUsage calls yield for the usage of keys and routes since the last call, until yield returns
// false.
func (g *Guard) yieldUsage(yield func(collector.KeyOrigin) bool) {
	g.addRefused()
	g.stats.Unmeasured.Add(g.running.usage.yield(yield))
}

// addRefused adds the requests of held keys that were refused since the last call.
func (g *Guard) addRefused() {
	if !g.rules.Load().costs {
		return
	}
	for _, h := range g.hot.All() {
		if state := g.stateOf(h.Key); state != nil && h.Hold != nil {
			refused := state.refused.Load()
			g.running.usage.addHeld(h.Key.String(), max(0, refused-state.refusedTold))
			state.refusedTold = refused
		}
	}
}
