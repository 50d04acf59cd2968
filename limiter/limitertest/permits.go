package limitertest

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/limiter/permits"
)

// PermitsConfig tells the suite about permits.
type PermitsConfig struct {
	// New makes one new object, as so many clients see it.
	New func(t *testing.T, clients int) []permits.RateLimiter
	// Synctest runs each case in a bubble of testing/synctest, where the time of those
	// who wait is exact. It is for permits that wait for nothing outside of it.
	Synctest bool
}

// TestPermits runs the suite of [permits.RateLimiter]: the lines of the checklist's
// section E.
func TestPermits(t *testing.T, c PermitsConfig) {
	for _, x := range permitCases {
		if x.exact && !c.Synctest {
			continue
		}
		t.Run(x.name, func(t *testing.T) {
			if !c.Synctest {
				x.run(&permitsWorld{T: t, config: &c, per: 300 * ms})
				return
			}
			synctest.Test(t, func(t *testing.T) { x.run(&permitsWorld{T: t, config: &c, per: sec}) })
		})
	}
}

// patience is how long something may take on a busy machine that ought to take no time.
const patience = 30 * time.Second

// skew is by how much two clocks of one machine may run apart during a case.
const skew = 20 * ms

type permitCase struct {
	name  string
	run   func(*permitsWorld)
	exact bool // only where time is exact
}

// permitsWorld is the world of one case.
type permitsWorld struct {
	*testing.T
	config *PermitsConfig
	per    time.Duration // an interval that a case may wait for
}

func (p *permitsWorld) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *permitsWorld) fails(err, want error) {
	p.Helper()
	if !errors.Is(err, want) {
		p.Fatalf("error %v, want %v", err, want)
	}
}

// one is an object with a rate, as one client sees it.
func (p *permitsWorld) one(n int64, per time.Duration) permits.RateLimiter {
	p.Helper()
	x := p.config.New(p.T, 1)[0]
	p.must(x.SetRate(p.Context(), rateOf(n, per)))
	return x
}

func rateOf(n int64, per time.Duration) permits.Rate {
	return permits.Rate{Rate: hotparam.Rate{N: n, Per: per}}
}

// takes fails unless n permits are acquired, or are not.
func (p *permitsWorld) takes(x permits.RateLimiter, n int64, want bool) {
	p.Helper()
	got, err := x.TryAcquire(p.Context(), n)
	p.must(err)
	if got != want {
		p.Fatalf("acquire %d: %v, want %v", n, got, want)
	}
}

func (p *permitsWorld) left(x permits.RateLimiter, want int64) {
	p.Helper()
	got, err := x.AvailablePermits(p.Context())
	p.must(err)
	if got != want {
		p.Fatalf("%d permits are available, want %d", got, want)
	}
}

// soon fails unless it is so before long.
func (p *permitsWorld) soon(what string, is func() bool) {
	p.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(20 * ms) {
		if time.Now().After(end) {
			p.Fatalf("not after %v: %s", patience, what)
		}
	}
}

// answers fails unless the answer is as wanted.
func (p *permitsWorld) answers(want bool) func(bool, error) {
	return func(got bool, err error) {
		p.Helper()
		p.must(err)
		if got != want {
			p.Fatalf("%v, want %v", got, want)
		}
	}
}

// gone fails unless the rate goes away before long.
func (p *permitsWorld) gone(x permits.RateLimiter) {
	p.Helper()
	p.soon("the rate is gone", func() bool {
		_, err := x.Config(p.Context())
		if err != nil {
			p.fails(err, permits.ErrRateNotSet)
		}
		return err != nil
	})
}
