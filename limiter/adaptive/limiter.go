package adaptive

import (
	"cmp"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Limiter bounds the requests in flight by a limit that it finds on its own and adjusts as the
// server changes. It admits as many requests as the server works on and a few more, so that the
// server is never idle and no queue delays requests. It needs only the latencies. estimator.go
// describes how it finds the limit.
//
// It is safe for concurrent use. Acquire is lock-free, Done takes one short lock, and neither
// allocates. The argument now of its methods is the monotonic time since a fixed instant, such
// as time.Since(start).
//
// A request over the limit is denied at once. To let it wait instead, acquire one of Limit
// permits of a semaphore first (package limiter/semaphore), and then the Limiter with the
// lease; see the example.
type Limiter struct {
	cpu      func() float64
	inFlight atomic.Int64
	limit    atomic.Int64
	denying  atomic.Bool  // whether a request was denied in this round
	leaves   atomic.Int64 // about the time until the next request ends, in ns

	admitted atomic.Uint64
	denied   atomic.Uint64

	mu    sync.Mutex
	state estimator
}

// Config configures a [Limiter]. The zero value is valid.
type Config struct {
	// Min and Max bound the limit. Zero means 1 and 1,000. Initial is the first limit. Zero
	// means 20, or the nearest bound. Choose it rather too low than too high: the limit doubles
	// in a window in which it is too low.
	Min, Max, Initial int
	// Window is the minimum time between two changes of the limit. It gets longer if requests
	// take over a third of it, or if there are fewer than 30. Zero means 250 ms.
	Window time.Duration
	// Tolerance is the accepted latency as a multiple of the latency without a queue, above 1.
	// Zero means 1.5. A higher value treats more variation as normal, and accepts more latency.
	Tolerance float64
	// CPU returns how busy the server is, 0 to 1, such as [CPU].Usage. The limit is then also
	// lowered until the server is at most as busy as CPUTarget. If CPU is nil or returns NaN,
	// the latency alone decides. It is called once a window, under a lock, so it must not
	// block.
	CPU       func() float64
	CPUTarget float64 // zero means 0.8
}

// defaultMax is the default of Config.Max.
const defaultMax = 1000

func (c Config) withDefaults() Config {
	c.Min = cmp.Or(c.Min, 1)
	c.Max = cmp.Or(c.Max, max(defaultMax, c.Min))
	c.Initial = cmp.Or(c.Initial, min(max(20, c.Min), c.Max))
	c.Window = cmp.Or(c.Window, 250*time.Millisecond)
	c.Tolerance = cmp.Or(c.Tolerance, 1.5)
	c.CPUTarget = cmp.Or(c.CPUTarget, 0.8)
	return c
}

func (c *Config) validate() error {
	switch {
	case c.Min < 1 || c.Max < c.Min || c.Max > rules.MaxConcurrency:
		return fmt.Errorf("adaptive: Min %d, Max %d: want 1 to %d, Min at most Max", c.Min, c.Max, rules.MaxConcurrency)
	case c.Initial < c.Min || c.Initial > c.Max:
		return fmt.Errorf("adaptive: Initial %d: must be Min, %d, to Max, %d", c.Initial, c.Min, c.Max)
	case c.Window < time.Millisecond || c.Window > time.Minute:
		return fmt.Errorf("adaptive: Window %v: must be 1ms to 1m", c.Window)
	case !(c.Tolerance > 1 && c.Tolerance <= 1000):
		return fmt.Errorf("adaptive: Tolerance %v: must be above 1 and at most 1000", c.Tolerance)
	case !(c.CPUTarget > 0 && c.CPUTarget <= 1):
		return fmt.Errorf("adaptive: CPUTarget %v: must be above 0 and at most 1", c.CPUTarget)
	}
	return nil
}

// New returns a Limiter. It starts no goroutine.
func New(c Config) (*Limiter, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	a := &Limiter{cpu: c.CPU, state: estimator{
		min: float64(c.Min), max: float64(c.Max), limit: float64(c.Initial),
		tolerance: c.Tolerance, cpuTarget: c.CPUTarget, window: c.Window,
	}}
	if a.cpu == nil {
		a.cpu = math.NaN
	}
	a.limit.Store(int64(c.Initial))
	return a, nil
}

// Bounds of RetryAfter.
const (
	minRetry = time.Millisecond
	maxRetry = time.Hour
)

// clamp keeps the difference of two instants within int64.
func clamp(now time.Duration) time.Duration { return min(max(now, 0), 1<<62) }

// Outcome is the way in which a request ended.
type Outcome uint8

// Outcomes of requests.
const (
	// Success is an answer whose latency is a measure of the server. This includes most errors.
	Success Outcome = iota
	// Dropped means that the server was overloaded and did not answer: the request timed out,
	// or the server reported the overload. The limit is lowered.
	Dropped
	// Ignored requests are no measure of the server: the caller left, or the request was
	// refused before the server began with it.
	Ignored
)

// Admission is a request in flight. It is not for concurrent use.
type Admission struct {
	limiter *Limiter
	start   time.Duration
}

// Acquire admits a request if fewer than Limit are in flight. A denial has [rules.ReasonBusy]
// and a RetryAfter that estimates when the next request ends. Done of its Admission does
// nothing.
func (a *Limiter) Acquire(now time.Duration) (Admission, rules.Decision) {
	limit := a.limit.Load()
	for {
		n := a.inFlight.Load()
		if n >= limit {
			a.denied.Add(1)
			if !a.denying.Load() {
				a.denying.Store(true)
			}
			retry := max(time.Duration(a.leaves.Load()), minRetry)
			return Admission{}, rules.Decision{Reason: rules.ReasonBusy, Limit: limit, RetryAfter: retry}
		}
		if a.inFlight.CompareAndSwap(n, n+1) {
			a.admitted.Add(1)
			return Admission{a, now}, rules.Decision{
				Allowed: true, Reason: rules.ReasonWithin, Limit: limit, Remaining: limit - n - 1,
			}
		}
	}
}

// Done ends the request with its outcome. Only the first call has an effect.
func (m *Admission) Done(now time.Duration, outcome Outcome) {
	a := m.limiter
	if a == nil {
		return
	}
	m.limiter = nil
	inFlight := a.inFlight.Add(-1) + 1
	start, end := clamp(m.start), clamp(now)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state.add(start, end, inFlight, outcome) {
		a.state.update(end, a.denying.Swap(false), a.cpu())
		a.publish()
	}
}

// publish sets the limit of Acquire to that of the estimator.
func (a *Limiter) publish() {
	a.limit.Store(int64(a.state.limit))
	a.leaves.Store(int64(min(a.state.base/a.state.limit, float64(maxRetry))))
}

// Limit returns the number of requests that may be in flight now.
func (a *Limiter) Limit() int { return int(a.limit.Load()) }

// SetMax changes the highest limit, for example by a [Schedule]. Max is never set below Min.
func (a *Limiter) SetMax(maximum int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state.max = min(max(float64(maximum), a.state.min), rules.MaxConcurrency)
	a.state.limit = min(a.state.limit, a.state.max)
	a.publish()
}

// Stats holds the findings of a [Limiter], and counters of its decisions.
type Stats struct {
	Limit    int
	InFlight int
	Latency  time.Duration // latency without a queue; 0 until it is known
	Admitted uint64
	Denied   uint64
}

// Stats returns a snapshot.
func (a *Limiter) Stats() Stats {
	a.mu.Lock()
	base := a.state.base
	a.mu.Unlock()
	return Stats{
		Limit: a.Limit(), InFlight: int(a.inFlight.Load()), Latency: time.Duration(base),
		Admitted: a.admitted.Load(), Denied: a.denied.Load(),
	}
}
