package middleware

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/hotset"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/fleet"
	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/rules"
)

// Guard decides on requests. It is safe for concurrent use.
type Guard struct {
	rules    atomic.Pointer[ruleSet]
	counts   *collector.Collector // nil if no rule may have hot
	hot      *hotset.Set[*hotState]
	localHot *localHot
	failover *limiter.Failover // nil if there is no backend
	fleet    *fleet.Fleet      // holds permits of limits with scope: fleet; nil if the backend does not lend
	cached   *limiter.Cached   // asked by failover; nil if the program gave a Failover
	local    *limiter.Memory   // decides while the backend is unavailable; nil if the program gave a Failover
	maxKeys  int               // see WithMaxKeys
	backends backends
	// heldPermits are those of keys that are held by their cost, by back end, unless Redis has them.
	heldPermits *semaphore.Memory
	requests    sync.Pool // of *request
	tickets     sync.Pool // of *Ticket
	running     runningTickets
	opts        options
	sharing     sharing
	controls    atomic.Pointer[controls] // nil if there are none
	someHot     atomic.Bool              // whether some key is hot
	lastHot     atomic.Int64             // Unix time in nanoseconds when some key began or ceased to be; 0 if none did
	former      formerLimits
	heated      heatedStates // guarded by sharing.mu
	bodies      bodies
	concrete    concreteRoutes
	backoffs    backoffs
	lines       limiter.WaitLines // requests that wait for their turn
	sampling    sync.Mutex        // guards the samples of hot keys
	reports     int64             // reports of Admitted; guarded by sampling

	controlled controlState

	stats            Counters[atomic.Int64]
	withheld, absent spreadCount
	backendTimes     durations
	decisions        map[string]*decisionCounts // by rule; guarded by sharing.mu, except in New
}

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
	g.requests.New = func() any { return &request{guard: g, verdict: allowed, shard: made.Add(1)} }
	g.tickets.New = func() any { return &Ticket{guard: g, shard: tickets.Add(1) % runningShards} }
	g.localHot = newLocalHot(g)
	g.hot = hotset.New(g.newHotState, hotset.Config[*hotState]{
		KeepFor: func(h *hotState) time.Duration { return h.timeToFull(g.opts.clock()) },
		OnSwap: func(version string, hot []rules.Hot) {
			g.localHot.updatePublished(hot)
			g.noteHot(len(hot) > 0)
			if g.opts.onSwap != nil {
				g.opts.onSwap(version, hot)
			}
		},
		OnFleet: g.localHot.updateFleet,
	})
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

// HotSet returns the writing side of the guard's set of hot keys, for a hotkeys.Watcher.
func (g *Guard) HotSet() hotset.Writer { return g.hot }

// HotKey is a hot key with the numbers of its passed and refused requests in this process
// since it became hot.
type HotKey struct {
	rules.Hot
	Passed, Refused int64
	OnHot           rules.OnHotCounts // in neither Passed nor Refused, apart from those in Alone
}

// HotKeys returns the keys that are hot now, the highest rate first. Local is set for keys
// that only this instance has found hot.
func (g *Guard) HotKeys() []HotKey {
	var keys []HotKey
	for _, h := range g.hot.All() {
		key := HotKey{Hot: h}
		if state := g.stateOf(h.Key); state != nil {
			key.Passed, key.Refused, key.OnHot = state.passed.Load(), state.refused.Load(), state.onHot()
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

// Counters are counters of a guard; see [Stats].
type Counters[N any] struct {
	Limited     N // requests that were refused
	Blocked     N // part of Limited: requests with a value that a rule or an operator blocks
	Busy        N // part of Limited: requests that found no free permit of a concurrency limit
	Unavailable N // part of Limited: requests refused because the backend was unavailable
	Served      N // part of Limited: requests that were answered instead of the handler
	// Undecided counts questions that an available backend did not answer: the request's
	// context had ended, or the backend does not support the limit.
	Undecided N
	Shadowed  N // requests that would have been refused
	Waited    N // requests that waited for their turn
	Waiting   N // requests that wait for their turn now
	Gone      N // part of Waited: requests whose context ended while they waited; not in Limited
	Charged   N // requests whose cost was charged at their end
	Panics    N // requests that passed because hotparam panicked
	// Unmeasured counts requests of rules with hot.cost whose usage found no room, at least in part.
	Unmeasured N
	// Canceled counts requests of held keys that were canceled, by limit.cancel.
	Canceled N
	// More counts the times that a rule made more than [rules.MaxKeys] keys of a request. The
	// keys beyond that were counted as one.
	More N
}

// Stats are a guard's counters since it was made.
type Stats struct {
	Counters[int64]
	// Remembered counts questions that were denied without a call, since the backend had
	// already said until when it denies them.
	Remembered int64
	// Displaced counts keys that lost their place in a limit's full table, and keys of a limit
	// with concurrency that found none. They are still limited, but a key may be refused that
	// should not be; see [WithMaxKeys].
	Displaced int64
	// Inherited counts requests whose keys were not in the table and began with an earlier
	// debt: their own or, rarely, another key's.
	Inherited int64
	Local     int64 // keys that only this instance had found hot
	Refuted   int64 // part of Local: keys that the aggregator did not confirm
	Unmarked  int64 // part of Local: keys that were not limited because there was no room
	// Concrete counts routes that are the path of a request although a rule has the template,
	// such as "/u/7" for "/u/{id}". Beyond some thousand, further routes are not counted.
	Concrete int64
	// Withheld counts parameters that were left out of keys because they look secret.
	Withheld int64
	// Absent counts parameters that rules name and that should always be present: the
	// function of a [WithParam] returned "", or the request has no client address, as on a
	// Unix socket. Such a request makes no key of them.
	Absent int64
	// Bodies counts the bodies that were read for rules that depend on them.
	Bodies int64
	// Unread counts the bodies that rules depend on but that could not be read.
	Unread Unread
}

// spreadCount is a counter in several cache lines, since each request may add to it.
type spreadCount [8]struct {
	n atomic.Int64
	_ [56]byte
}

func (c *spreadCount) add(n int) {
	if n > 0 {
		c[rand.Uint32()%uint32(len(c))].n.Add(int64(n))
	}
}

// addOne adds one in the shard of a request. A processor tends to use the same requests, so
// it tends to use the same shard.
func (c *spreadCount) addOne(shard uint32) { c[shard%uint32(len(c))].n.Add(1) }

func (c *spreadCount) load() (sum int64) {
	for i := range c {
		sum += c[i].n.Load()
	}
	return sum
}

// Stats returns the guard's counters.
func (g *Guard) Stats() Stats {
	s := Stats{
		Counters: base.LoadCounters[Counters[int64]](&g.stats),
		Concrete: g.concrete.found.Load(),
		Withheld: g.withheld.load(),
		Absent:   g.absent.load(),
		Bodies:   g.bodies.read.Load(),
		Unread:   g.bodies.unreadStats(),
	}
	for _, n := range g.displaced() {
		s.Displaced, s.Inherited = s.Displaced+int64(n.displaced), s.Inherited+int64(n.inherited)
	}
	s.Local, s.Refuted = g.localHot.stats()
	s.Unmarked = g.hot.RefusedMarks()
	if g.cached != nil {
		s.Remembered = int64(g.cached.Stats().Saved)
	}
	return s
}
