package limiter

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam"
)

// Adaptive bounds how many requests are at work at a time by a limit that it finds by
// itself, and keeps finding as the server changes: as many as the server works on, and
// some more, so that it is never idle, and no queue makes them late. It needs nothing
// but the latencies; see adaptive_limit.go for how.
//
// It is safe for concurrent use. Acquire is lock-free, Done takes one short lock, and
// neither allocates. The now of its methods is the monotonic time since some fixed
// instant, as for [TokenBucket].
//
// Who is over the limit is denied at once. For a waiting line let a [Semaphore] ask
// for Limit permits, and Acquire with the lease.
type Adaptive struct {
	cpu      func() float64
	inFlight atomic.Int64
	limit    atomic.Int64
	denying  atomic.Bool  // somebody was denied in this round
	leaves   atomic.Int64 // ns after which the next one leaves, about

	admitted atomic.Uint64
	denied   atomic.Uint64

	mu    sync.Mutex
	state adaptiveLimit
}

// AdaptiveConfig is an [Adaptive]'s; the zero value will do.
type AdaptiveConfig struct {
	// Min and Max bound the limit; 0: 1 and DefaultAdaptiveMax. Initial is what it
	// begins with; 0: 20, or the bound that is nearest. Rather low than high: it doubles
	// in a window where that is too low.
	Min, Max, Initial int
	// Window is how long a round lasts after which the limit is set, at least: it gets
	// longer for requests that take over a third of it, or are fewer than 30. 0: 250 ms.
	Window time.Duration
	// Tolerance is how many times as long an answer may take as one without a queue,
	// above 1; 0: 1.5. More lets more variation pass for none, and more latency.
	Tolerance float64
	// CPU tells how busy the server is, 0 to 1, such as [CPU].Usage: the limit is then
	// also lowered until it is at most at CPUTarget. Nil, or not a number: the latency
	// alone decides. It is called once a round, under a lock, and only tells what it
	// knows.
	CPU       func() float64
	CPUTarget float64 // 0: 0.8
}

// DefaultAdaptiveMax is how high an adaptive limit may go.
const DefaultAdaptiveMax = 1000

func (c AdaptiveConfig) withDefaults() AdaptiveConfig {
	if c.Min == 0 {
		c.Min = 1
	}
	if c.Max == 0 {
		c.Max = max(DefaultAdaptiveMax, c.Min)
	}
	if c.Initial == 0 {
		c.Initial = min(max(20, c.Min), c.Max)
	}
	if c.Window == 0 {
		c.Window = 250 * time.Millisecond
	}
	if c.Tolerance == 0 {
		c.Tolerance = 1.5
	}
	if c.CPUTarget == 0 {
		c.CPUTarget = 0.8
	}
	return c
}

func (c *AdaptiveConfig) validate() error {
	switch {
	case c.Min < 1 || c.Max < c.Min || c.Max > hotparam.MaxConcurrency:
		return fmt.Errorf("limiter: adaptive: Min %d, Max %d: want 1 to %d, Min at most Max", c.Min, c.Max, hotparam.MaxConcurrency)
	case c.Initial < c.Min || c.Initial > c.Max:
		return fmt.Errorf("limiter: adaptive: Initial %d: must be Min, %d, to Max, %d", c.Initial, c.Min, c.Max)
	case c.Window < time.Millisecond || c.Window > time.Minute:
		return fmt.Errorf("limiter: adaptive: Window %v: must be 1ms to 1m", c.Window)
	case !(c.Tolerance > 1 && c.Tolerance <= 1000):
		return fmt.Errorf("limiter: adaptive: Tolerance %v: must be above 1 and at most 1000", c.Tolerance)
	case !(c.CPUTarget > 0 && c.CPUTarget <= 1):
		return fmt.Errorf("limiter: adaptive: CPUTarget %v: must be above 0 and at most 1", c.CPUTarget)
	}
	return nil
}

// NewAdaptive makes an adaptive limit, which starts nothing.
func NewAdaptive(c AdaptiveConfig) (*Adaptive, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	a := &Adaptive{cpu: c.CPU, state: adaptiveLimit{
		min: float64(c.Min), max: float64(c.Max), limit: float64(c.Initial),
		tolerance: c.Tolerance, cpuTarget: c.CPUTarget, window: c.Window,
	}}
	if a.cpu == nil {
		a.cpu = math.NaN
	}
	a.limit.Store(int64(c.Initial))
	return a, nil
}

// Outcome is how a request ended.
type Outcome uint8

// Outcomes of requests.
const (
	// Success is an answer whose latency tells of the server; most errors are, too.
	Success Outcome = iota
	// Dropped was not answered for want of strength: it timed out, or the server said
	// that it has too much to do. The limit is lowered.
	Dropped
	// Ignored tells nothing: the caller went away, or the request was refused before
	// the server began with it.
	Ignored
)

// Admission is a request that was let in. It is not for concurrent use.
type Admission struct {
	adaptive *Adaptive
	start    time.Duration
}

// Acquire lets a request in if fewer than Limit are. Denied: [hotparam.ReasonBusy], and
// RetryAfter is an estimate of when the next one leaves; Done of the Admission then
// does nothing.
func (a *Adaptive) Acquire(now time.Duration) (Admission, hotparam.Decision) {
	limit := a.limit.Load()
	for {
		n := a.inFlight.Load()
		if n >= limit {
			a.denied.Add(1)
			if !a.denying.Load() {
				a.denying.Store(true)
			}
			retry := max(time.Duration(a.leaves.Load()), minEstimate)
			return Admission{}, hotparam.Decision{Reason: hotparam.ReasonBusy, Limit: limit, RetryAfter: retry}
		}
		if a.inFlight.CompareAndSwap(n, n+1) {
			a.admitted.Add(1)
			return Admission{a, now}, hotparam.Decision{
				Allowed: true, Reason: hotparam.ReasonWithin, Limit: limit, Remaining: limit - n - 1,
			}
		}
	}
}

// Done tells how the request ended. The second time it does nothing.
func (m *Admission) Done(now time.Duration, outcome Outcome) {
	a := m.adaptive
	if a == nil {
		return
	}
	m.adaptive = nil
	inFlight := a.inFlight.Add(-1) + 1
	start, end := time.Duration(instant(m.start)), time.Duration(instant(now))
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state.add(start, end, inFlight, outcome) {
		a.state.reckon(end, a.denying.Swap(false), a.cpu())
		a.publish()
	}
}

// publish tells Acquire what the state has come to.
func (a *Adaptive) publish() {
	a.limit.Store(int64(a.state.limit))
	a.leaves.Store(int64(min(a.state.base/a.state.limit, float64(maxEstimate))))
}

// Limit is how many requests may be at work now.
func (a *Adaptive) Limit() int { return int(a.limit.Load()) }

// SetMax changes how high the limit may go, such as by a [Schedule]. It is never below
// Min.
func (a *Adaptive) SetMax(most int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state.max = min(max(float64(most), a.state.min), hotparam.MaxConcurrency)
	a.state.limit = min(a.state.limit, a.state.max)
	a.publish()
}

// AdaptiveStats tells what an [Adaptive] has found, and counts whom it let in.
type AdaptiveStats struct {
	Limit    int
	InFlight int
	Latency  time.Duration // without a queue; 0: not known yet
	Admitted uint64
	Denied   uint64
}

// Stats is a snapshot.
func (a *Adaptive) Stats() AdaptiveStats {
	a.mu.Lock()
	base := a.state.base
	a.mu.Unlock()
	return AdaptiveStats{
		Limit: a.Limit(), InFlight: int(a.inFlight.Load()), Latency: time.Duration(base),
		Admitted: a.admitted.Load(), Denied: a.denied.Load(),
	}
}
