package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// Config configures a [Fleet].
type Config struct {
	// Lender keeps the buckets. Required.
	Lender Lender
	// Timeout bounds a settlement. Default 200 ms.
	Timeout time.Duration
	// Instances returns the number of instances that is assumed while the Lender has not
	// answered yet. Nil means one.
	Instances func() int
	// Logger gets a line when the Lender becomes unavailable and one when it answers again. Nil
	// disables it.
	Logger *slog.Logger
}

const defaultTimeout = 200 * time.Millisecond

func (c *Config) validate() error {
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	if c.Instances == nil {
		c.Instances = func() int { return 1 }
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	switch {
	case c.Lender == nil:
		return errors.New("fleet: Config.Lender is nil")
	case c.Timeout < 0:
		return fmt.Errorf("fleet: Config.Timeout %v: must be positive", c.Timeout)
	}
	return nil
}

// Fleet settles the stocks of an instance. It is safe for concurrent use.
type Fleet struct {
	cfg   Config
	name  string // identifies this instance
	clock *clock
	made  atomic.Int64  // number of stocks made
	trip  atomic.Int64  // ns, about the round trip of a settlement
	wake  chan struct{} // has an element if stocks may be due

	running atomic.Bool // whether Run is in progress

	mu      sync.Mutex
	active  map[*Stock]struct{} // stocks to settle
	calls   sync.WaitGroup      // settlements under way
	count   int                 // number of them
	failing bool                // whether the last settlement failed, and that was logged
	stats   Stats
}

// Stats is a snapshot of the counters of a [Fleet].
type Stats struct {
	Calls    uint64 // settlements sent, each with some stocks
	Asks     uint64 // stocks settled in them
	Failures uint64 // settlements of stocks that failed
	Active   int    // stocks that hold permits or have demand
}

// New returns a Fleet. The caller calls Run.
func New(c Config) (*Fleet, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Fleet{
		cfg: c, name: rand.Text()[:16], clock: newClock(), wake: make(chan struct{}, 1), active: make(map[*Stock]struct{}),
	}, nil
}

// StockConfig configures a [Stock].
type StockConfig struct {
	Name, Key string // name of the limit, and the key
	Quota     *rules.Quota
	Outage    rules.OutagePolicy
	Owing     bool // costs are known late; see [Stock.Charge]
}

// Stock returns a new stock of a key, which holds nothing yet. It needs no end: a stock without
// demand returns its permits, and is settled again when it has demand.
func (f *Fleet) Stock(c StockConfig) *Stock {
	s := &Stock{
		fleet: f, name: c.Name, key: c.Key, holder: f.name + "/" + strconv.FormatInt(f.made.Add(1), 36),
		outage: c.Outage, owing: c.Owing, classes: 1, part: new(part),
	}
	s.quota.Store(c.Quota)
	return s
}

// Stocks returns the stocks of a key whose requests have so many classes of priority, the most
// important first. Stocks of the others are granted nothing of the [Reserve] that they must leave.
func (f *Fleet) Stocks(c StockConfig, classes int) []*Stock {
	all := make([]*Stock, classes)
	for i := range all {
		all[i] = f.Stock(c)
		all[i].class, all[i].classes, all[i].part = i, classes, all[0].part
	}
	return all
}

// Reserve returns the part of a burst that requests of a class must leave to the classes before it.
func Reserve(burst int64, class, classes int) int64 {
	i, n := int64(class), int64(max(classes, 1))
	return burst/n*i + burst%n*i/n
}

// Stats returns a snapshot of the counters.
func (f *Fleet) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.stats
	s.Active = len(f.active)
	return s
}

// Running reports whether Run is in progress. If it is not, stocks are never settled, and each
// decides alone.
func (f *Fleet) Running() bool { return f.running.Load() }

// Run settles stocks until ctx ends. Then it returns their permits to the Lender, and returns nil.
// Only one Run may be in progress at a time.
func (f *Fleet) Run(ctx context.Context) error {
	f.running.Store(true)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			f.running.Store(false)
			f.calls.Wait()
			f.returnAll(context.WithoutCancel(ctx))
			return nil
		case <-timer.C:
		case <-f.wake:
		}
		timer.Reset(f.settleDue(ctx))
	}
}

const (
	maxCalls = 16               // settlements under way at a time
	maxAsks  = 64               // stocks in one settlement
	idle     = time.Second      // time between two looks without stocks
	soonest  = time.Millisecond // least time between two looks
)

// settleDue settles the stocks that are due, and returns the time until the next one is.
func (f *Fleet) settleDue(ctx context.Context) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.now()
	next := now + int64(idle)
	var due []*Stock
	for s := range f.active {
		if when := s.dueAt(); when > now {
			next = min(next, when)
		} else {
			due = append(due, s)
		}
	}
	for some := range slices.Chunk(due, maxAsks) {
		if f.count == maxCalls {
			break // the end of a settlement wakes Run
		}
		next = min(next, f.start(ctx, some))
	}
	return max(time.Duration(next-f.clock.now()), soonest)
}

// start settles stocks in a goroutine of its own, and returns the clock's time at which the first
// of them is due again if that remains unanswered. The caller holds mu.
func (f *Fleet) start(ctx context.Context, stocks []*Stock) (next int64) {
	next = math.MaxInt64
	asks, from := make([]Ask, 0, len(stocks)), make([]*Stock, 0, len(stocks))
	for _, s := range stocks {
		ask, due := s.prepare()
		if next = min(next, s.dueAt()); due {
			asks, from = append(asks, ask), append(from, s)
		}
	}
	if len(asks) > 0 {
		f.count++
		f.stats.Calls++
		f.stats.Asks += uint64(len(asks))
		f.calls.Go(func() { f.settle(ctx, from, asks) })
	}
	return next
}

// settle sends asks and applies the answers.
func (f *Fleet) settle(ctx context.Context, from []*Stock, asks []Ask) {
	limited, cancel := context.WithTimeout(ctx, f.cfg.Timeout)
	defer cancel()
	sent, answers := f.clock.now(), make([]Answer, len(asks))
	f.cfg.Lender.Settle(limited, asks, answers)
	took := f.clock.now() - sent
	var failed error
	var forgotten []*Stock
	for i, s := range from {
		if err := answers[i].Err; err != nil {
			failed = err
		}
		if s.applyAnswer(&asks[i], &answers[i]) {
			forgotten = append(forgotten, s)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count--
	for _, s := range forgotten {
		// A request that comes now finds the stock inactive, or is found by isIdle.
		if s.active.Store(false); !s.isIdle() {
			s.active.Store(true)
			continue
		}
		delete(f.active, s)
	}
	switch {
	case failed != nil:
		f.stats.Failures++
		if !f.failing && ctx.Err() == nil {
			f.failing = true
			f.cfg.Logger.Warn("limits of the fleet: a settlement failed: instances use what they hold, then their part", "error", failed)
		}
	default:
		trip := f.trip.Load()
		f.trip.Store(trip + (took-trip)/8)
		if f.failing {
			f.failing = false
			f.cfg.Logger.Info("limits of the fleet: settlements succeed again")
		}
	}
	f.signal()
}

// returnAll returns the permits that the stocks hold.
func (f *Fleet) returnAll(ctx context.Context) {
	f.mu.Lock()
	stocks := slices.Collect(maps.Keys(f.active))
	clear(f.active)
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, f.cfg.Timeout)
	defer cancel()
	for some := range slices.Chunk(stocks, maxAsks) {
		if ctx.Err() != nil {
			return
		}
		asks := make([]Ask, len(some))
		for i, s := range some {
			asks[i] = s.lastAsk()
		}
		f.cfg.Lender.Settle(ctx, asks, make([]Answer, len(asks)))
	}
}

// wakeFor makes the stock be settled soon.
func (f *Fleet) wakeFor(s *Stock) {
	if s.active.Load() {
		return
	}
	f.mu.Lock()
	f.active[s] = struct{}{}
	s.active.Store(true)
	f.mu.Unlock()
	f.signal()
}

func (f *Fleet) signal() { base.Notify(f.wake) }
