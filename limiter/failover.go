package limiter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/limiter/internal/breaker"
	"github.com/hotparam/hotparam/rules"
)

// FailoverConfig configures a [Failover]. The zero value is valid.
type FailoverConfig struct {
	// Timeout bounds each call of the primary. Zero means DefaultTimeout.
	Timeout time.Duration
	// Outage defines how asks are decided while the primary is unavailable. Empty means
	// OutageLocal.
	Outage rules.OutagePolicy
	// Local decides with OutageLocal. Nil means a new [Memory] with the built-in algorithms.
	Local Backend
	// Instances returns the number of instances that share the primary. While it is
	// unavailable, each has its part of the limits: see [Share]. Instances is called for each
	// decision, so it must be quick. Nil means one.
	Instances func() int
	// MinProbe and MaxProbe bound the time between two probes of an unavailable node, which
	// doubles from MinProbe to MaxProbe. Zero means 100 ms and two seconds.
	MinProbe, MaxProbe time.Duration
	// Logger gets a line when a node of the primary becomes unavailable and one when it is
	// available again, at most one such pair a minute for each node. It also gets at most one
	// line a minute about asks that the primary cannot decide. Nil disables it.
	Logger *slog.Logger
}

// Defaults of a [FailoverConfig].
const (
	DefaultTimeout  = 30 * time.Millisecond
	defaultMinProbe = 100 * time.Millisecond
	defaultMaxProbe = 2 * time.Second
)

func (c *FailoverConfig) validate() error {
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Outage = cmp.Or(c.Outage, rules.OutageLocal)
	if c.Instances == nil {
		c.Instances = func() int { return 1 }
	}
	c.MinProbe = cmp.Or(c.MinProbe, defaultMinProbe)
	c.MaxProbe = cmp.Or(c.MaxProbe, max(defaultMaxProbe, c.MinProbe))
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	switch {
	case c.Timeout < 0:
		return fmt.Errorf("limiter: FailoverConfig.Timeout %v: must be positive", c.Timeout)
	case c.Outage != rules.OutageLocal && c.Outage != rules.OutageOpen && c.Outage != rules.OutageClosed:
		return fmt.Errorf("limiter: FailoverConfig.Outage %q: want %q, %q or %q", c.Outage, rules.OutageLocal, rules.OutageOpen, rules.OutageClosed)
	case c.MinProbe < time.Millisecond || c.MaxProbe < c.MinProbe || c.MaxProbe > time.Hour:
		return fmt.Errorf("limiter: FailoverConfig.MinProbe %v, MaxProbe %v: want 1ms ≤ MinProbe ≤ MaxProbe ≤ 1h", c.MinProbe, c.MaxProbe)
	}
	return nil
}

// Failover is a backend that continues without its primary. The circuit breaker of a node opens
// when a call to the node fails, or when two calls in a row have no answer within the time-out.
// Such a request, and all requests for keys of the node while the breaker is open, are decided
// at once as Outage defines. After the first call without an answer, at most 64 calls at a time
// wait for the node, and other requests are decided at once. Probes, one at a time for each
// node and at growing intervals, find out when the node takes writes again. Then requests go to
// it again. So an outage costs each request in flight at its beginning at most one time-out,
// and other requests nothing. A [Clustered] primary has nodes; any other counts as one node.
//
// An [OpError] opens no breaker: only that ask is decided as Outage defines, and counted. Nor do
// [ErrNoKey], [ErrUnsupported] and the errors of an invalid quota, which the caller receives.
// Nor does a call whose caller's context ended, unless ten in a row end like that. Its error is
// the context's for errors.Is, whatever the primary returned.
//
// No op is asked twice. With OutageLocal, permits that were granted locally are charged to the
// primary when it answers again: by Run, and by the next call for the key, ahead of its op. The
// Charge has a Mark, since it is sent again if its answer was lost. So one instance admits no
// more than the quota, and neither do several that all were without the primary. After an outage
// others may still decide without the primary: each probes at times of its own, and their charges
// come later. Until all must have found it, which takes about as long as the outage, at most 2.5 s,
// and two time-outs, an instance denies what exceeds its part even if the primary grants it.
// Instances that are without the primary while others are not may each admit their part in
// addition to what the primary grants the others. Up to 16,384 keys are charged afterwards;
// FailoverStats.Dropped counts the permits of further keys.
//
// A call that was lost while the primary answered others that began later is no sign of an
// outage. It is decided locally, and charged at once.
//
// With OutageLocal each instance decides by its part of the quota ([Share]). An ask for more than
// that part ever holds is denied, with ReasonUnavailable. Permits that the primary grants are taken
// from Local as well, as far as Local has them, so that an outage finds no fresh bursts there.
// With OutageOpen a decision is allowed with ReasonOpen. With OutageClosed it is denied with
// ReasonUnavailable until the next probe. Both drop a Charge, Return or Forget.
//
// A Failover is safe for concurrent use. It is a [Batcher] that makes one call of the primary
// if the primary is a Batcher too. Each op of a batch is decided separately, except for ops
// with Together. The local backend decides its ops with Together as one, before the primary is
// asked.
type Failover struct {
	*failover
	outage rules.OutagePolicy
}

// failover is the state that all views of one Failover share.
type failover struct {
	breakers  *breaker.Set[Op]
	primary   Backend
	batcher   Batcher // the primary, or nil
	memory    *Cached // the primary if it is a Cached, or nil
	timeout   time.Duration
	minProbe  time.Duration
	local     Backend
	instances func() int
	logger    *slog.Logger
	shares    shareCache
	owed      *ledger
	running   atomic.Int64 // calls of Run in progress

	failures, timedOut, opErrors atomic.Uint64
	asLocal, asOpen, asClosed    atomic.Uint64
	opErrorLog                   loglimit.Limit
}

var _ Batcher = (*Failover)(nil)

// NewFailover returns a backend that decides without primary while that is unavailable. Its Run
// makes the probes. While Run is not active, a request makes a due probe itself, and waits for
// it. No other Failover may have the same primary, which remembers for each key the last Charge of
// one: use With.
func NewFailover(primary Backend, cfg FailoverConfig) (*Failover, error) {
	if primary == nil {
		return nil, errors.New("limiter: NewFailover: no primary")
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Local == nil {
		local, err := NewMemory(MemoryConfig{})
		if err != nil {
			return nil, err
		}
		cfg.Local = local
	}
	f := &failover{
		primary: primary, timeout: cfg.Timeout, minProbe: cfg.MinProbe,
		local: cfg.Local, instances: cfg.Instances, logger: cfg.Logger, owed: newLedger(),
	}
	if f.memory, _ = primary.(*Cached); f.memory != nil {
		f.primary = asking{f.memory}
	}
	f.batcher, _ = f.primary.(Batcher)
	f.breakers = breaker.New(breaker.Config[Op]{
		Probe: f.probe, Back: f.owed.wake, Min: cfg.MinProbe, Max: cfg.MaxProbe, Logger: cfg.Logger,
		Settling: settling * cfg.Timeout,
		Begun:    "limiter: the backend is unavailable", Over: "limiter: the backend is back",
	})
	return &Failover{outage: cfg.Outage, failover: f}, nil
}

// With returns a Failover that shares f's primary, breakers and Local but decides by outage while
// the primary is unavailable. One Run serves both. A value that is no [rules.OutagePolicy] means
// OutageLocal.
func (f *Failover) With(outage rules.OutagePolicy) *Failover {
	if outage != rules.OutageOpen && outage != rules.OutageClosed {
		outage = rules.OutageLocal
	}
	return &Failover{failover: f.failover, outage: outage}
}

// Unwrap returns the primary.
func (f *Failover) Unwrap() Backend { return f.primary }

// Run probes unavailable nodes, and charges the primary with the permits that were granted
// without it. It blocks until ctx ends, and returns nil.
func (f *Failover) Run(ctx context.Context) error {
	var settling sync.WaitGroup
	settling.Go(func() { f.runSettle(ctx) })
	f.breakers.Run(ctx)
	settling.Wait()
	return nil
}

// probe writes to the node of sample's key.
func (f *failover) probe(ctx context.Context, sample Op) error {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	return probe(ctx, f.primary, sample)
}

// FailoverStats are the counters of a [Failover].
type FailoverStats struct {
	UnavailableSince    time.Time // start of the oldest current outage of a node; zero if there is none
	Nodes               int       // unavailable nodes
	Failures            uint64    // asks that failed because their node failed or did not answer in time
	TimedOut            uint64    // failures without an answer in time
	OpErrors            uint64    // asks that the primary could not decide, though it was available
	Probes              uint64
	Local, Open, Closed uint64 // asks that were decided without the primary
	Owing               int64  // keys with local grants that are not charged to the primary yet
	Settled             uint64 // permits charged to the primary afterwards
	Dropped             uint64 // permits that are never charged: there were too many keys, or the primary cannot
}

// Stats returns a snapshot of the counters.
func (f *Failover) Stats() FailoverStats {
	nodes := f.breakers.Stats()
	return FailoverStats{
		UnavailableSince: nodes.Since, Nodes: nodes.Unavailable, Probes: nodes.Probes,
		Failures: f.failures.Load(), TimedOut: f.timedOut.Load(), OpErrors: f.opErrors.Load(),
		Local: f.asLocal.Load(), Open: f.asOpen.Load(), Closed: f.asClosed.Load(),
		Owing: f.owed.owing.Load(), Settled: f.owed.settled.Load(), Dropped: f.owed.dropped.Load(),
	}
}
