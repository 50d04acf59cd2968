package bench

import (
	"context"
	mathrand "math/rand/v2"
)

// enforceFleet holds the running parts: a Redis, an aggregator, instances.
type enforceFleet struct {
	harness
	config  EnforceConfig
	rand    *mathrand.Rand
	samples int
}

// newEnforceFleet starts all parts and returns when all instances follow the hot set. The caller must
// stop the returned fleet even if there is an error.
func newEnforceFleet(ctx context.Context, c EnforceConfig) (*enforceFleet, error) {
	f := &enforceFleet{harness: newHarness(c.Command, c.Redis), config: c, rand: newRand(1)}
	if err := f.useRedis(ctx); err != nil {
		return f, err
	}
	common := partConfig{Redis: f.redis, Namespace: f.namespace, Threshold: c.Threshold, Slow: c.Slow}
	aggregator, err := f.start(ctx, "aggregator", common)
	if err != nil {
		return f, err
	}
	if err := aggregator.receive(&common.StatsD); err != nil {
		return f, err
	}
	return f, f.startInstances(ctx, "instance", c.Instances, func(i int) any {
		return instanceConfig{partConfig: common, Number: i, Of: c.Instances}
	})
}
