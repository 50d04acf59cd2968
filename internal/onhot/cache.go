package onhot

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/loglimit"
)

// Config says how much a cache may use. Zero values are defaults.
type Config struct {
	// Total is the memory of all answers in bytes, by default 64 MiB. A quarter of it is for
	// answers that are being recorded, so no answer is larger than that. Answers that are being
	// written to clients add to it once they have left the cache.
	Total    int64
	Deadline time.Duration // longest run of a leader's handler, by default 10 s
	Leaders  int           // largest number of leaders at once, by default 1,024
	Log      *slog.Logger  // log of panics, by default slog.Default()
	// Counters replaces the cache's own counters if it is not nil. So a cache that replaces this one
	// continues its counts.
	Counters *Counters[atomic.Int64]
}

// Cache answers identical requests once, and from memory. It is safe for concurrent use.
type Cache struct {
	config      Config
	store       *store
	generations generations
	stats       *Counters[atomic.Int64]
	recording   atomic.Int64 // bytes of answers that are being recorded
	panics      loglimit.Limit

	base   context.Context // ends with Close
	cancel context.CancelFunc

	mu      sync.Mutex // not taken by a request that the store answers
	flights map[string]*flight
	running int            // leaders, and flights about to have one
	leaders sync.WaitGroup // the same
}

// Counters are a cache's counters of requests, by how they were answered.
type Counters[N any] struct {
	How       [hows]N
	Alone     [reasons]N // requests with How Alone, by reason
	Refreshes N          // leaders that refresh a stale answer, which count for no request
	Panics    N          // leaders whose handler panicked
}

// Stats are a cache's statistics.
type Stats struct {
	Counters[int64]
	Entries int   // answers and keys that are not for sharing
	Bytes   int64 // memory of the entries and of answers that are being recorded
	Leaders int   // handlers that run for all
}

// New returns a cache. It starts nothing.
func New(c Config) (*Cache, error) {
	if c.Total == 0 {
		c.Total = 64 << 20
	}
	if c.Deadline == 0 {
		c.Deadline = 10 * time.Second
	}
	if c.Leaders == 0 {
		c.Leaders = 1024
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Counters == nil {
		c.Counters = new(Counters[atomic.Int64])
	}
	if c.Total < 1<<16 || c.Total > 8<<30 {
		return nil, errors.New("onhot: Total must be between 64 KiB and 8 GiB")
	}
	if c.Deadline < 0 || c.Leaders < 0 {
		return nil, errors.New("onhot: Deadline and Leaders must not be negative")
	}
	entries, err := newStore(c.Total - c.Total/4)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Cache{
		config: c, store: entries, stats: c.Counters, generations: generations{seed: maphash.MakeSeed()},
		base: ctx, cancel: cancel, flights: make(map[string]*flight),
	}, nil
}

// Do finds the answer of a request of a hot key, or runs the handler for it and for all
// identical requests. Requests with different tags share nothing. The caller writes
// [Result.Reply] if the result is shared, refuses a request that admit has refused, and
// otherwise asks the limit and runs the handler as without a cache.
func (c *Cache) Do(r *http.Request, p *Policy, tag string, admit Admit) Result {
	res := c.do(r, p, tag, admit)
	c.stats.How[res.How].Add(1)
	if res.How == Alone {
		c.stats.Alone[res.Reason].Add(1)
	}
	return res
}

// Refuse returns the result of a request that the caller does not share, and counts it.
func (c *Cache) Refuse(reason Reason) Result {
	c.stats.How[Alone].Add(1)
	c.stats.Alone[reason].Add(1)
	return Result{How: Alone, Reason: reason}
}

func (c *Cache) do(r *http.Request, p *Policy, tag string, admit Admit) Result {
	reason, demanded := p.refuseRequest(r)
	if reason != ReasonNone {
		return Result{How: Alone, Reason: reason}
	}
	key, ok := p.key(r, tag)
	if !ok {
		return Result{How: Alone, Reason: ReasonLong}
	}
	for range 3 {
		now := time.Now()
		e := c.lookup(key)
		res, refresh := e.result(demanded, now)
		if res.How != unknown && !refresh {
			return res
		}
		f, leads, reason := c.enter(key, p, c.generations.stamp(r, tag), e, refresh)
		admitted := leads && c.lead(f, r, admit, refresh)
		switch {
		case refresh && admitted:
			c.stats.Refreshes.Add(1)
			fallthrough
		case refresh:
			return res
		case f == nil && reason == ReasonNone:
			continue
		case f == nil:
			return Result{How: Alone, Reason: reason}
		case leads && !admitted:
			return Result{How: Refused}
		}
		if res := f.wait(r.Context(), leads); res.How != unknown {
			return res
		}
		// The limit refused the leader, or its client left while it waited for the limit. A request
		// that has joined takes its place.
	}
	return Result{How: Alone, Reason: ReasonUnadmitted}
}

// wait waits for the flight's end. The one who leads waits as long as its client does, since its
// request is already with the handler.
func (f *flight) wait(ctx context.Context, leads bool) Result {
	var patience <-chan time.Time
	if !leads {
		t := time.NewTimer(f.policy.Wait)
		defer t.Stop()
		patience = t.C
	}
	select {
	case <-f.done:
	case <-patience:
		return Result{How: Alone, Reason: ReasonWait}
	case <-ctx.Done():
		return Result{How: Gone}
	}
	switch {
	case f.answer != nil && leads:
		return Result{How: Led, answer: f.answer, at: f.answer.received}
	case f.answer != nil:
		return Result{How: Joined, answer: f.answer, at: time.Now()}
	case f.reason == ReasonUnadmitted:
		return Result{}
	}
	return Result{How: Alone, Reason: f.reason}
}

// reserve reserves memory for recordings, and reports whether there was enough.
func (c *Cache) reserve(n int64) bool {
	if c.recording.Add(n) > c.config.Total/4 {
		c.recording.Add(-n)
		return false
	}
	return true
}

func (c *Cache) unreserve(n int64) { c.recording.Add(-n) }

// InvalidateTarget invalidates the answers to the target with an id ([TargetID]), of all tags and
// variants. An answer whose handler has begun before is neither stored nor given to requests that
// come later.
func (c *Cache) InvalidateTarget(id uint64) { c.generations.target(id).Add(1) }

// InvalidateTag invalidates the answers of the tag with an id ([TagID]) in the same way.
func (c *Cache) InvalidateTag(id uint64) { c.generations.tag(id).Add(1) }

// Flush invalidates all answers in the same way, and frees their memory.
func (c *Cache) Flush() {
	c.generations.flushes.Add(1)
	c.store.entries.InvalidateAll()
}

// Stats returns the cache's statistics.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	running := c.running
	c.mu.Unlock()
	return Stats{
		Counters: base.LoadCounters[Counters[int64]](c.stats),
		Entries:  c.store.entries.EstimatedSize(),
		Bytes:    int64(c.store.entries.WeightedSize()) + c.recording.Load(),
		Leaders:  running,
	}
}

// Close cancels the leaders and waits until their handlers have returned, or until ctx ends.
// Later requests go alone.
func (c *Cache) Close(ctx context.Context) error {
	c.mu.Lock()
	c.cancel()
	c.mu.Unlock()
	c.store.close()
	done := make(chan struct{})
	go func() {
		c.leaders.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
