package middleware

import (
	"context"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/limiter"
)

// backends are the backend of limits with scope: exact, one for each of what may be done
// while it is away.
type backends map[hotparam.Away]*limiter.Failover

var aways = [...]hotparam.Away{hotparam.AwayLocal, hotparam.AwayOpen, hotparam.AwayClosed}

// newBackends puts a memory of denials, a deadline and circuit breakers around the
// backend.
func (g *Guard) newBackends() error {
	if g.opts.backend == nil {
		return nil
	}
	given, ok := g.opts.backend.(*limiter.Failover)
	if !ok {
		local, err := limiter.NewMemory(limiter.MemoryConfig{MaxKeys: g.opts.maxKeys, Clock: g.opts.clock, Algorithms: g.opts.algorithms})
		if err != nil {
			return err
		}
		g.cached, err = limiter.NewCached(g.opts.backend, limiter.CachedConfig{Clock: g.opts.clock})
		if err != nil {
			return err
		}
		given, err = limiter.NewFailover(g.cached, limiter.FailoverConfig{Local: local, Instances: g.instances, Logger: g.opts.log})
		if err != nil {
			return err
		}
	}
	g.failover = given
	g.backends = make(backends)
	for _, away := range aways {
		g.backends[away] = g.failover.With(away)
	}
	return nil
}

// Run probes the backend of limits with scope: exact while it is away. Without Run the
// requests do that, and wait for it. Run blocks until the context ends, and returns nil.
func (g *Guard) Run(ctx context.Context) error {
	if g.failover == nil {
		<-ctx.Done()
		return nil
	}
	return g.failover.Run(ctx)
}

// BackendStats returns the counters of the backend of limits with scope: exact. They are
// zero if there is none.
func (g *Guard) BackendStats() limiter.FailoverStats {
	if g.failover == nil {
		return limiter.FailoverStats{}
	}
	return g.failover.Stats()
}
