package limiter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/limiter/internal/breaker"
	"github.com/hotparam/hotparam/rules"
)

// FailoverConfig configures a [Failover]. The zero value is valid.
type FailoverConfig struct {
	// Timeout bounds each call of the primary. Zero means DefaultTimeout.
	Timeout time.Duration
	// Away is how asks are decided while the primary is away. Empty means AwayLocal.
	Away rules.Away
	// Local decides with AwayLocal. Nil means a [Memory] of its own with the built-in
	// algorithms.
	Local Backend
	// Instances returns the number of instances that share the primary: while it is away
	// each has its part of the limits, see [Share]. It is called for each decision, so it
	// must be quick. Nil means one.
	Instances func() int
	// MinProbe and MaxProbe are the first time between two probes of a node that is away,
	// and what that doubles to. Zero means 100 ms and two seconds.
	MinProbe, MaxProbe time.Duration
	// Logger gets a line when a node of the primary goes away and one when it is back, at
	// most one such pair a minute for each node, and at most one line a minute about asks
	// that the primary cannot decide. Nil disables it.
	Logger *slog.Logger
}

// Defaults of a [FailoverConfig].
const (
	DefaultTimeout  = 30 * time.Millisecond
	defaultMinProbe = 100 * time.Millisecond
	defaultMaxProbe = 2 * time.Second
)

func (c *FailoverConfig) validate() error {
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Away == "" {
		c.Away = rules.AwayLocal
	}
	if c.Instances == nil {
		c.Instances = func() int { return 1 }
	}
	if c.MinProbe == 0 {
		c.MinProbe = defaultMinProbe
	}
	if c.MaxProbe == 0 {
		c.MaxProbe = max(defaultMaxProbe, c.MinProbe)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.Timeout < 0:
		return fmt.Errorf("limiter: FailoverConfig.Timeout %v: must be positive", c.Timeout)
	case c.Away != rules.AwayLocal && c.Away != rules.AwayOpen && c.Away != rules.AwayClosed:
		return fmt.Errorf("limiter: FailoverConfig.Away %q: want %q, %q or %q", c.Away, rules.AwayLocal, rules.AwayOpen, rules.AwayClosed)
	case c.MinProbe < time.Millisecond || c.MaxProbe < c.MinProbe || c.MaxProbe > time.Hour:
		return fmt.Errorf("limiter: FailoverConfig.MinProbe %v, MaxProbe %v: want 1ms ≤ MinProbe ≤ MaxProbe ≤ 1h", c.MinProbe, c.MaxProbe)
	}
	return nil
}

// Failover is a backend that goes on without its primary. A call to the primary that
// fails, or two in a row that have no answer within the time-out, open the circuit breaker of
// the node that was asked: that request, and all for keys of that node that come while it is
// open, are decided at once by what Away says. After the first of the two, 64 calls at a time
// wait for the node, and other requests are decided at once. Probes, one at a time for each node and ever more
// rarely, find out when the node takes writes again, and then requests go to it again.
// So an outage costs each request that is under way when it begins one time-out at most,
// and the others nothing. A primary that is [Clustered] has nodes; any other is one.
//
// An [OpError] opens nothing: that ask alone is decided by what Away says, and counted.
// Nor do [ErrNoKey] and [ErrUnsupported], or what comes of a quota that is not valid,
// which are the caller's to know; nor a call whose caller's context ended, unless ten in
// a row end so. That error is the context's for errors.Is, whatever the primary called it.
//
// Nothing is asked twice. With AwayLocal, what was granted locally is charged to the primary
// when it answers again: by the next call for the key, ahead of it, and by Run. The Charge has
// a Mark, as it is sent again if its answer was lost. So one instance admits no more than the
// quota. Of several, each may admit its part besides what the others took from the primary. For
// two time-outs after a node answers again, an instance that has used up its part denies what
// the primary grants, if the others' charges may use that up. Up to 16,384 keys are charged
// afterwards; FailoverStats.Dropped counts the permits of others.
//
// With AwayLocal each instance decides by its part of the quota ([Share]); an ask for
// more than that part ever holds is denied, with ReasonAway. What the primary grants
// is charged to Local as well, as far as Local has it, so that an outage finds no fresh
// bursts there. With AwayOpen a decision is allowed with ReasonOpen, with AwayClosed
// denied with ReasonAway until the next probe; a Charge, Return or Forget is dropped.
//
// It is safe for concurrent use, and a [Batcher]: one call of the primary if that is
// one too. Of a batch each op is decided by itself, except for those that are Together. Of
// these the local backend decides its own as one, before the primary is asked.
type Failover struct {
	*failover
	away rules.Away
}

// failover is what all views of one Failover share.
type failover struct {
	breakers  *breaker.Set[Op]
	primary   Backend
	batcher   Batcher // the primary, or nil
	memory    *Cached // of the primary, or nil
	timeout   time.Duration
	minProbe  time.Duration
	local     Backend
	instances func() int
	logger    *slog.Logger
	shares    shareCache
	owed      *ledger
	running   atomic.Int64 // Runs
	made      time.Time
	recovered atomic.Int64 // when a node last answered again, in ns since made; 0 if none did

	failures, timedOut, opErrors atomic.Uint64
	asLocal, asOpen, asClosed    atomic.Uint64
	opErrorLog                   opErrorLog
}

var _ Batcher = (*Failover)(nil)

// NewFailover returns a backend that decides by itself while primary is away. Its Run makes
// the probes; while Run does not run, a request that comes when a probe is due makes it, and
// waits for it.
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
		local: cfg.Local, instances: cfg.Instances, logger: cfg.Logger, owed: newLedger(), made: time.Now(),
	}
	if f.memory, _ = primary.(*Cached); f.memory != nil {
		f.primary = asking{f.memory}
	}
	f.batcher, _ = f.primary.(Batcher)
	f.breakers = breaker.New(breaker.Config[Op]{
		Probe: f.probe, Back: f.owed.wake, Min: cfg.MinProbe, Max: cfg.MaxProbe, Logger: cfg.Logger,
		Begun: "limiter: the backend is unavailable", Over: "limiter: the backend is back",
	})
	return &Failover{away: cfg.Away, failover: f}, nil
}

// With is the same backend, but for what is done while the primary is away: they are
// of the same breakers and one Local, and one Run serves both. What is no [rules.Away]
// counts as AwayLocal.
func (f *Failover) With(away rules.Away) *Failover {
	return &Failover{failover: f.failover, away: away}
}

// Run probes the nodes that are away, and charges the primary with what was granted without
// it. It blocks until the context ends, and returns nil.
func (f *Failover) Run(ctx context.Context) error {
	var settling sync.WaitGroup
	settling.Go(func() { f.runSettle(ctx) })
	f.breakers.Run(ctx)
	settling.Wait()
	return nil
}

// probe writes to the node that has sample's key.
func (f *failover) probe(ctx context.Context, sample Op) error {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	err := probe(ctx, f.primary, sample)
	if err == nil {
		f.markRecovered() // before calls go there again
	}
	return err
}

// FailoverStats tells how a [Failover] fares.
type FailoverStats struct {
	Away                time.Time // since when a node of the primary is away; zero: none is
	Nodes               int       // that are away
	Failures            uint64    // asks that failed since their node was away, or became so
	TimedOut            uint64    // of them: had no answer in time
	OpErrors            uint64    // asks that the primary could not decide, though it was there
	Probes              uint64
	Local, Open, Closed uint64 // asks that were decided without the primary
	Owing               int64  // keys of which the primary is not charged with what was granted locally
	Settled             uint64 // permits that it was charged with
	Dropped             uint64 // permits that it will not be: for too many keys, or it cannot
}

// Stats is a snapshot of the counters.
func (f *Failover) Stats() FailoverStats {
	nodes := f.breakers.Stats()
	return FailoverStats{
		Away: nodes.Since, Nodes: nodes.Away, Probes: nodes.Probes,
		Failures: f.failures.Load(), TimedOut: f.timedOut.Load(), OpErrors: f.opErrors.Load(),
		Local: f.asLocal.Load(), Open: f.asOpen.Load(), Closed: f.asClosed.Load(),
		Owing: f.owed.owing.Load(), Settled: f.owed.settled.Load(), Dropped: f.owed.dropped.Load(),
	}
}
