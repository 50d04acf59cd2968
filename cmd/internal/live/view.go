package live

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/admitted"
	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/redisconfig"
	"github.com/hotparam/hotparam/rules"
)

// Config configures a [View] and a [Follower]. Namespace is required; a zero field
// otherwise means its default.
type Config struct {
	Namespace string
	// Every is the interval at which Redis is read. Default 1 s.
	Every time.Duration
	// Timeout bounds each call to Redis. Default 1 s.
	Timeout time.Duration
	// Logger receives a line when Redis cannot be read, and when it can be read again. A nil
	// Logger disables it.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Every = cmp.Or(c.Every, time.Second)
	c.Timeout = cmp.Or(c.Timeout, time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate(client redis.UniversalClient) error {
	return redisconfig.Check("Config", c.Namespace, client, redisconfig.NamedDuration{Name: "Every", Length: c.Every}, redisconfig.NamedDuration{Name: "Timeout", Length: c.Timeout})
}

// Snapshot is the state of a namespace at one instant. It is immutable and shared by all
// callers.
type Snapshot struct {
	Namespace string
	// Seq increases with each snapshot. It is 0 before the first.
	Seq uint64
	// Read is when Redis last answered, on the local clock. It is zero before the first
	// answer.
	Read time.Time
	// Clock is Redis's clock at Read. Since and Until below are on it.
	Clock time.Time
	// Err is why Redis could not be read since Read, or nil. All other fields are as of Read.
	Err error
	// Published reports whether an aggregator publishes, that is, whether its heartbeat is
	// there. Without one no key is limited, and Hot is empty.
	Published bool
	// Hot are the hot keys, the highest rate first.
	Hot []HotKey
	// Suspects are the keys that may be hot, with Key and Rate only, the highest rate first.
	Suspects []published.Hot
	// Summary has the keys that are nearest to being hot, and the traffic of the rules. It is empty if
	// it cannot be read.
	Summary published.Summary
	// Instances are the instances that send counts, by name: the 1,000 that were heard last, out
	// of InstancesTotal.
	Instances      []published.Instance
	InstancesTotal int
	// Controls are the controls in force, by key. ControlsErr is why they are not known, such as
	// a missing right to read them, or nil.
	Controls    []published.Control
	ControlsErr error
	// Members are the heartbeats of instances and aggregators. MembersErr is why they are not
	// known, or nil.
	Members    []published.Member
	MembersErr error
}

// HotKey is a hot key, its points of the last minutes, and the rate that all instances admit.
type HotKey struct {
	published.Hot
	History  History
	Admitted admitted.Gauge
}

// Control returns the control of a key that is in force, or nil.
func (s *Snapshot) Control(key rules.Key) *published.Control {
	for i := range s.Controls {
		if s.Controls[i].Key == key {
			return &s.Controls[i]
		}
	}
	return nil
}

// View reads the state of a namespace and its events once a second, for any number of readers.
// The load on Redis does not depend on their number. Memory is bounded: 1,000 keys with 300
// points of 20 bytes each, and [Backlog] events. A View is safe for concurrent use.
type View struct {
	cfg    Config
	client redis.UniversalClient

	snapshot atomic.Pointer[Snapshot]
	asked    chan struct{} // requests a read at once

	redisReader // used only by Run's goroutine

	mu      sync.Mutex // guards the fields below
	changed chan struct{}
	backlog []Event // the newest events, in order
	found   uint64  // number of events so far, including those that are no longer in the backlog
}

// NewView returns a view. It starts nothing and makes no call. The caller closes the client once
// Run has returned.
func NewView(client redis.UniversalClient, cfg Config) (*View, error) {
	if err := cfg.validate(client); err != nil {
		return nil, fmt.Errorf("live view: %w", err)
	}
	cfg = cfg.withDefaults()
	v := &View{
		cfg: cfg, client: client, asked: make(chan struct{}, 1), changed: make(chan struct{}),
		redisReader: newReader(client, cfg),
	}
	v.snapshot.Store(&Snapshot{Namespace: cfg.Namespace})
	return v, nil
}

// Run reads until ctx ends, and returns nil. It must be called only once. While Redis is
// unavailable the last snapshot stays, with the error.
func (v *View) Run(ctx context.Context) error {
	ticker := time.NewTicker(v.cfg.Every)
	defer ticker.Stop()
	pause := time.NewTimer(0) // between reads that were asked for
	defer pause.Stop()
	for {
		v.refresh(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-v.asked:
			pause.Reset(v.cfg.Every / 10)
			select {
			case <-ctx.Done():
				return nil
			case <-pause.C:
			}
		}
	}
}

// refresh reads Redis once and stores the result as a new snapshot.
func (v *View) refresh(ctx context.Context) {
	before := v.snapshot.Load()
	next, b, err := v.read(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		kept := *before
		kept.Err = err
		next = &kept
	}
	v.outage.Report(v.cfg.Logger, outageLines, time.Now(), err, loglimit.OutageText{
		Begun: "cannot read the state of the namespace from Redis; trying again", Over: "reading the state of the namespace from Redis again",
	})
	next.Seq = before.Seq + 1
	v.snapshot.Store(next)
	if err == nil {
		v.addEvents(b.events, b.missed > 0 || b.lost)
	}
	v.mu.Lock()
	close(v.changed)
	v.changed = make(chan struct{})
	v.mu.Unlock()
}

// Snapshot returns the latest state. It is never nil, and returned without a call to Redis.
func (v *View) Snapshot() *Snapshot { return v.snapshot.Load() }

// Changed returns a channel that is closed when a newer snapshot is stored.
func (v *View) Changed() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changed
}

// Now makes the view read Redis soon, such as after a change that the caller made. It does not
// block. It causes at most ten reads in each interval.
func (v *View) Now() {
	select {
	case v.asked <- struct{}{}:
	default: // a read is already requested
	}
}
