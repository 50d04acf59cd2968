package middleware

import (
	"context"
	"sync"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/fleet"
	"github.com/hotparam/hotparam/rules"
)

var outages = [...]rules.OutagePolicy{rules.OutageLocal, rules.OutageOpen, rules.OutageClosed}

// newBackends wraps the backend with a cache of denials, a deadline and circuit breakers.
func (g *Guard) newBackends() error {
	if g.opts.backend == nil {
		return nil
	}
	given, ok := g.opts.backend.(*limiter.Failover)
	if !ok {
		local, err := limiter.NewMemory(limiter.MemoryConfig{MaxKeys: g.maxKeys, Clock: g.opts.clock, Algorithms: g.opts.algorithms})
		if err != nil {
			return err
		}
		g.local = local
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
	if err := g.newFleet(); err != nil {
		return err
	}
	g.backends = make(backends)
	for _, outage := range outages {
		g.backends[outage] = g.failover.With(outage)
	}
	return nil
}

// Run probes the backend of limits with scope: fleet or exact while it is unavailable, and settles
// the permits that this instance holds. Without Run, requests probe the backend and wait for the
// answer, and each request of a limit with scope: fleet asks it. Run also logs limits whose tables
// have less room than keys in use. It blocks until ctx ends, and returns nil.
func (g *Guard) Run(ctx context.Context) error {
	if g.failover == nil {
		g.watchTables(ctx)
		return nil
	}
	var watch sync.WaitGroup
	defer watch.Wait()
	watch.Go(func() { g.watchTables(ctx) })
	if g.fleet != nil {
		watch.Go(func() { _ = g.fleet.Run(ctx) })
	}
	return g.failover.Run(ctx)
}

// BackendStats returns the counters of the backend of limits with scope: fleet or exact, or zeros
// if there is none.
func (g *Guard) BackendStats() limiter.FailoverStats {
	if g.failover == nil {
		return limiter.FailoverStats{}
	}
	return g.failover.Stats()
}

// newFleet makes what limits with scope: fleet need, if the backend lends permits.
func (g *Guard) newFleet() (err error) {
	lender := lenderOf(g.opts.backend)
	if lender == nil || g.opts.shadow {
		return nil
	}
	g.fleet, err = fleet.New(fleet.Config{Lender: lender, Instances: g.instances, Logger: g.opts.log})
	return err
}

// FleetStats returns the counters of limits with scope: fleet, or zeros if the backend does not
// lend permits.
func (g *Guard) FleetStats() fleet.Stats {
	if g.fleet == nil {
		return fleet.Stats{}
	}
	return g.fleet.Stats()
}
