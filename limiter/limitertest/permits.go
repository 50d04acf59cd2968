package limitertest

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/limiter/permits"
	"github.com/hotparam/hotparam/rules"
)

// PermitsConfig describes a [permits.RateLimiter] to the suite.
type PermitsConfig struct {
	// New returns a new object as seen by each of the clients.
	New func(t *testing.T, clients int) []permits.RateLimiter
	// Synctest runs each case in a bubble of testing/synctest, in which waits are exact. It is
	// for implementations that wait for nothing outside the bubble.
	Synctest bool
}

// TestPermits runs the suite of [permits.RateLimiter], section E of the checklist in
// checklist_table_test.go.
func TestPermits(t *testing.T, c PermitsConfig) {
	for _, x := range append(permitCases, permitWaitCases...) {
		if x.needsBubble && !c.Synctest {
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

// patience is how long an operation that should take no time may take on a busy machine.
const patience = 30 * time.Second

// skew is how far two clocks of one machine may drift apart during a case.
const skew = 20 * ms

type permitCase struct {
	name        string
	run         func(*permitsWorld)
	needsBubble bool // whether the case needs exact time
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

// newObject returns an object with a rate, as one client sees it.
func (p *permitsWorld) newObject(n int64, per time.Duration) permits.RateLimiter {
	p.Helper()
	x := p.config.New(p.T, 1)[0]
	p.must(x.SetRate(p.Context(), rateOf(n, per)))
	return x
}

func rateOf(n int64, per time.Duration) permits.Rate {
	return permits.Rate{Rate: rules.Rate{N: n, Per: per}}
}

// keptFor returns a rate of one permit a second with a KeepAlive.
func keptFor(d time.Duration) permits.Rate {
	return permits.Rate{Rate: perSecond(1), KeepAlive: d}
}

// takes fails unless the attempt to acquire n permits has the wanted result.
func (p *permitsWorld) takes(x permits.RateLimiter, n int64, want bool) {
	p.Helper()
	got, err := x.TryAcquire(p.Context(), n)
	p.must(err)
	if got != want {
		p.Fatalf("acquire %d: %v, want %v", n, got, want)
	}
}

func (p *permitsWorld) checkAvailable(x permits.RateLimiter, want int64) {
	p.Helper()
	got, err := x.AvailablePermits(p.Context())
	p.must(err)
	if got != want {
		p.Fatalf("%d permits are available, want %d", got, want)
	}
}

// eventually fails unless condition returns true within patience.
func (p *permitsWorld) eventually(what string, condition func() bool) {
	p.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(20 * ms) {
		if time.Now().After(end) {
			p.Fatalf("not after %v: %s", patience, what)
		}
	}
}

// answers returns a function that fails unless its arguments are want and no error.
func (p *permitsWorld) answers(want bool) func(bool, error) {
	return func(got bool, err error) {
		p.Helper()
		p.must(err)
		if got != want {
			p.Fatalf("%v, want %v", got, want)
		}
	}
}

// checkExpires fails unless the rate expires within patience.
func (p *permitsWorld) checkExpires(x permits.RateLimiter) {
	p.Helper()
	p.eventually("the rate is gone", func() bool {
		_, err := x.Config(p.Context())
		if err != nil {
			p.fails(err, permits.ErrRateNotSet)
		}
		return err != nil
	})
}
