package yardstick

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/fleet"
	"github.com/hotparam/hotparam/limiter/redislimiter"
	"github.com/hotparam/hotparam/rules"
)

// FleetPolicy is a way for instances to hold one limit together.
type FleetPolicy struct {
	Name string
	// Start starts an instance, with a client of its own.
	Start func(client redis.UniversalClient, limit FleetLimit) (FleetTake, error)
}

// FleetTake decides on a request of an instance.
type FleetTake func(ctx context.Context) (admitted bool, err error)

// FleetLimit is the limit that a [FleetPolicy] holds.
type FleetLimit struct {
	Namespace string // of the keys in Redis
	Key       string
	Quota     *rules.Quota
	Instances int
	// Go runs f until the measurement ends, with a context that ends then.
	Go func(f func(ctx context.Context))
}

// Names of hotparam's own policies.
const (
	PolicyFleet = "scope: fleet"
	PolicyExact = "scope: exact"
)

// FleetPolicies returns hotparam's own policies, as a guard has them.
func FleetPolicies() []FleetPolicy {
	return []FleetPolicy{{PolicyFleet, startFleetScope}, {PolicyExact, startExactScope}}
}

// startFleetScope starts an instance that holds permits in advance.
func startFleetScope(client redis.UniversalClient, limit FleetLimit) (FleetTake, error) {
	store, err := redislimiter.New(client, redislimiter.Config{Namespace: limit.Namespace})
	if err != nil {
		return nil, err
	}
	f, err := fleet.New(fleet.Config{Lender: store, Instances: func() int { return limit.Instances }})
	if err != nil {
		return nil, err
	}
	limit.Go(func(ctx context.Context) { _ = f.Run(ctx) }) // it returns nil
	for !f.Running() {
		time.Sleep(time.Millisecond)
	}
	stock := f.Stock(fleet.StockConfig{Name: "bench", Key: limit.Key, Quota: limit.Quota, Outage: rules.OutageClosed})
	return func(ctx context.Context) (bool, error) {
		if stock.Take(1) {
			return true, nil
		}
		if _, denied := stock.Shut(1); denied {
			return false, nil
		}
		return stock.Borrow(ctx, 1).Allowed, nil
	}, nil
}

// exactTimeout is longer than that of a guard, so that Redis decides on each request.
const exactTimeout = time.Second

// startExactScope starts an instance that asks Redis for each request and remembers denials.
func startExactScope(client redis.UniversalClient, limit FleetLimit) (FleetTake, error) {
	store, err := redislimiter.New(client, redislimiter.Config{Namespace: limit.Namespace, Timeout: exactTimeout})
	if err != nil {
		return nil, err
	}
	cached, err := limiter.NewCached(store, limiter.CachedConfig{})
	if err != nil {
		return nil, err
	}
	lim, err := limiter.New(cached, "bench", *limit.Quota)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (bool, error) {
		d, err := lim.AllowN(ctx, limit.Key, 1)
		return d.Allowed, err
	}, nil
}
