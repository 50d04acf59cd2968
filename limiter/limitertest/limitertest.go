// Package limitertest is the suite that every limiter by token bucket passes,
// in memory or elsewhere: tables of instants with the decisions that must come
// out, properties over random schedules against exact arithmetic, and
// concurrent use. It is meant to be run under the race detector.
package limitertest

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam"
)

// Limiter is what the suite sees of a limiter: a bucket that starts full. Its
// methods are called concurrently.
type Limiter interface {
	// Take takes n tokens at now, a monotonic time since some fixed instant,
	// if there are as many, else none.
	Take(now time.Duration, n int64) hotparam.Decision
	// Peek is the decision of Take, with what the bucket holds as Remaining. It
	// takes nothing.
	Peek(now time.Duration, n int64) hotparam.Decision
	// Charge takes n tokens, whether there are as many or not; at most the tokens
	// of a minute, or a burst if that is more, are owed.
	Charge(now time.Duration, n int64)
	// GiveBack returns the n tokens of a Take.
	GiveBack(n int64)
}

// factory makes a full bucket of burst tokens that earns rate.N in each
// rate.Per. It fails the test if it cannot.
type factory = func(t *testing.T, rate hotparam.Rate, burst int64) Limiter

// TestLimiter runs the suite on the limiters that fresh returns. Each case takes
// a fresh one. A limiter whose clock is coarser than a nanosecond rounds now
// down.
func TestLimiter(t *testing.T, fresh func(t *testing.T, rate hotparam.Rate, burst int64) Limiter) {
	for _, part := range []struct {
		name string
		run  func(*testing.T, factory)
	}{
		{"Instants", testInstants},
		{"Figures", testFigures},
		{"ClockReset", testClockReset},
		{"Debt", testDebt},
		{"Ideal", testIdeal},
		{"AnyWindow", testAnyWindow},
		{"ClockBack", testClockBack},
		{"ChargesAnyWindow", testChargesAnyWindow},
		{"TakeConcurrent", testTakeConcurrent},
		{"GiveBackConcurrent", testGiveBackConcurrent},
		{"ClockConcurrent", testClockConcurrent},
		{"ChargeConcurrent", testChargeConcurrent},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, fresh) })
	}
}

func perSecond(n int64) hotparam.Rate { return hotparam.Rate{N: n, Per: time.Second} }

// failer is what testing.T and rapid.T share.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// check fails unless got is want.
func check(t failer, what string, got, want hotparam.Decision) {
	t.Helper()
	if got != want {
		t.Fatalf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

// decision is what a bucket of burst tokens must say: allowed with remaining
// left, or denied until a retry after the given time.
func decision(burst int64, allowed bool, remaining int64, retry time.Duration) hotparam.Decision {
	d := hotparam.Decision{Allowed: allowed, Reason: hotparam.ReasonWithin, Limit: burst, Remaining: remaining, RetryAfter: retry}
	if !allowed {
		d.Reason = hotparam.ReasonLimited
	}
	return d
}
