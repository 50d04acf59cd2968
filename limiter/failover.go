package limiter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam"
)

// FailoverConfig is what a [Failover] needs to know.
type FailoverConfig struct {
	// Timeout is what one call to the primary may take; 0: DefaultTimeout.
	Timeout time.Duration
	// Away is what is done while the primary is away; empty: AwayLocal.
	Away hotparam.Away
	// Local decides with AwayLocal; nil: a [Memory] of its own, which knows the built-in
	// algorithms.
	Local Backend
	// Instances is how many share the primary: each has its part of the limits while it
	// is away, see [Share]. It is asked for each decision, and has to be quick. nil: one.
	Instances func() int
	// MinProbe and MaxProbe are the times between two probes of a primary that is
	// away: the first, and what it doubles to. 0: 100 ms and 2 s.
	MinProbe, MaxProbe time.Duration
	// Logger is told once when the primary goes away and once when it is back; nil:
	// nothing is logged.
	Logger *slog.Logger
}

// Defaults of a [FailoverConfig].
const (
	DefaultTimeout  = 30 * time.Millisecond
	DefaultMinProbe = 100 * time.Millisecond
	DefaultMaxProbe = 2 * time.Second
)

func (c *FailoverConfig) validate() error {
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Away == "" {
		c.Away = hotparam.AwayLocal
	}
	if c.Instances == nil {
		c.Instances = func() int { return 1 }
	}
	if c.MinProbe == 0 {
		c.MinProbe = DefaultMinProbe
	}
	if c.MaxProbe == 0 {
		c.MaxProbe = max(DefaultMaxProbe, c.MinProbe)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.Timeout < 0:
		return fmt.Errorf("limiter: FailoverConfig.Timeout %v: must be positive", c.Timeout)
	case c.Away != hotparam.AwayLocal && c.Away != hotparam.AwayOpen && c.Away != hotparam.AwayClosed:
		return fmt.Errorf("limiter: FailoverConfig.Away %q: want %q, %q or %q", c.Away, hotparam.AwayLocal, hotparam.AwayOpen, hotparam.AwayClosed)
	case c.MinProbe < time.Millisecond || c.MaxProbe < c.MinProbe || c.MaxProbe > time.Hour:
		return fmt.Errorf("limiter: FailoverConfig.MinProbe %v, MaxProbe %v: want 1ms ≤ MinProbe ≤ MaxProbe ≤ 1h", c.MinProbe, c.MaxProbe)
	}
	return nil
}

// Failover is a backend that goes on without its primary. A call to the primary that
// fails, or has no answer within the time-out, opens a circuit breaker: that request,
// and all that come while it is open, are decided at once by what Away says. Probes,
// one at a time and ever more rarely, find out when the primary is back, and then
// requests go to it again. So an outage costs each request that is under way when it
// begins one time-out at most, and the others nothing.
//
// Nothing that failed is asked again, and nothing that was decided meanwhile is told
// to the primary when it is back: a limit is off by what passed during the outage.
// A call whose caller's context ended is not a failure, unless ten in a row end so;
// nor is [ErrNoKey] or [ErrUnsupported], nor what comes of a quota that is not valid.
//
// With AwayLocal each instance decides by its part of the quota ([Share]); an ask for
// more than that part ever holds is denied, with ReasonAway. What the primary grants
// is charged to Local as well, as far as Local has it, so that an outage finds no fresh
// bursts there. With AwayOpen a decision is allowed with ReasonOpen, with AwayClosed
// denied with ReasonAway until the next probe; a Charge, Return or Forget is dropped.
//
// It is safe for concurrent use, and a [Batcher]: one call of the primary if that is
// one too.
type Failover struct {
	*failover
	away hotparam.Away
}

// failover is what all views of one Failover share.
type failover struct {
	breaker
	primary   Backend
	batcher   Batcher // the primary, or nil
	timeout   time.Duration
	local     Backend
	instances func() int
	parts     parts

	running                                     atomic.Int64 // Runs
	failures, probes, asLocal, asOpen, asClosed atomic.Uint64
}

var _ Batcher = (*Failover)(nil)

// NewFailover makes a backend that decides by itself while primary is away. Its Run
// has to run: it is what probes. Where it does not, a request that comes when a probe
// is due makes it, and waits for it.
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
	batcher, _ := primary.(Batcher)
	return &Failover{away: cfg.Away, failover: &failover{
		breaker: newBreaker(cfg.MinProbe, cfg.MaxProbe, cfg.Logger),
		primary: primary, batcher: batcher, timeout: cfg.Timeout, local: cfg.Local, instances: cfg.Instances,
	}}, nil
}

// With is the same backend, but for what is done while the primary is away: they are
// of one breaker and one Local, and one Run serves both. What is no [hotparam.Away]
// counts as AwayLocal.
func (f *Failover) With(away hotparam.Away) *Failover {
	return &Failover{failover: f.failover, away: away}
}

// Run probes the primary while it is away. It blocks until the context ends, and
// returns nil.
func (f *Failover) Run(ctx context.Context) error {
	f.running.Add(1)
	defer f.running.Add(-1)
	f.watch(ctx, f.ask)
	return nil
}

// Do implements [Backend].
func (f *Failover) Do(ctx context.Context, op Op) (Result, error) {
	switch {
	case op.Name == "" || op.Key == "":
		return Result{}, ErrNoKey
	case ours(op), f.down(ctx):
		return f.decide(ctx, op)
	}
	outages := f.outages.Load()
	within, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	res, err := f.primary.Do(within, op)
	switch {
	case err != nil && unsound(op):
		return Result{}, err
	case f.failed(ctx, err):
		f.failures.Add(1)
		f.open(outages, err, op)
	case err == nil:
		f.note(ctx, op, res)
		return res, nil
	}
	if answered(err) || ended(ctx) {
		return Result{}, err
	}
	return f.decide(ctx, op)
}

// DoAll implements [Batcher].
func (f *Failover) DoAll(ctx context.Context, ops []Op, results []Result) error {
	for i := range ops {
		if ops[i].Name == "" || ops[i].Key == "" {
			return ErrNoKey
		}
	}
	if len(ops) == 0 {
		return nil
	}
	if f.batcher == nil || slices.ContainsFunc(ops, ours) || f.down(ctx) {
		return eachInTurn(ctx, f, ops, results)
	}
	outages := f.outages.Load()
	within, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	err := f.batcher.DoAll(within, ops, results)
	switch {
	case err != nil && slices.ContainsFunc(ops, unsound):
		return err
	case f.failed(ctx, err):
		f.failures.Add(1)
		f.open(outages, err, ops...)
	case err == nil:
		for i := range ops {
			f.note(ctx, ops[i], results[i])
		}
		return nil
	}
	if answered(err) || ended(ctx) {
		return err
	}
	for i := range ops {
		if results[i], err = f.decide(ctx, ops[i]); err != nil {
			return err
		}
	}
	return nil
}

// unsound tells whether an op fails wherever it goes.
func unsound(op Op) bool { return op.Quota == nil || op.Quota.Validate() != nil }

// down tells whether the primary is away.
func (f *Failover) down(ctx context.Context) bool {
	if f.tripped.Load() && f.running.Load() == 0 {
		f.probe(ctx, f.ask)
	}
	return f.tripped.Load()
}

// ask is a probe.
func (f *failover) ask(ctx context.Context, ops []Op) error {
	f.probes.Add(1)
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	results := make([]Result, len(ops))
	if f.batcher != nil {
		return f.batcher.DoAll(ctx, ops, results)
	}
	return eachInTurn(ctx, f.primary, ops, results)
}

// FailoverStats tells how a [Failover] fares.
type FailoverStats struct {
	Away                time.Time // since when the primary is away; zero: it is not
	Failures            uint64    // calls that failed, or had no answer in time
	Probes              uint64
	Local, Open, Closed uint64 // asks that were decided without the primary
}

// Stats is a snapshot of the counters.
func (f *Failover) Stats() FailoverStats {
	s := FailoverStats{
		Failures: f.failures.Load(), Probes: f.probes.Load(),
		Local: f.asLocal.Load(), Open: f.asOpen.Load(), Closed: f.asClosed.Load(),
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tripped.Load() {
		s.Away = f.since
	}
	return s
}
