package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/yardstick"
)

// peers returns other policies for one limit over all instances.
func peers() []yardstick.FleetPolicy {
	return []yardstick.FleetPolicy{
		{Name: "redis_rate", Start: startRedisRate},
		{Name: "a counter in Redis", Start: startCounter},
		{Name: "counters each 100 ms", Start: startSynchronised},
	}
}

// startRedisRate starts an instance that asks redis_rate for each request.
func startRedisRate(client redis.UniversalClient, limit yardstick.FleetLimit) (yardstick.FleetTake, error) {
	limiter, key, q := redis_rate.NewLimiter(client), limit.Namespace+":"+limit.Key, limit.Quota
	l := redis_rate.Limit{Rate: int(q.Rate.N), Burst: int(q.Burst), Period: q.Rate.Per}
	return func(ctx context.Context) (bool, error) {
		got, err := limiter.Allow(ctx, key, l)
		if err != nil {
			return false, err
		}
		return got.Allowed > 0, nil
	}, nil
}

// window returns the key of a counter for the clock's second, which is the window that these
// policies know.
func window(limit yardstick.FleetLimit, now time.Time) string {
	return fmt.Sprintf("%s:%s_%d", limit.Namespace, limit.Key, now.Unix())
}

const windowTTL = 2 * time.Second

// count adds n to the counter of a window, and returns its value.
func count(ctx context.Context, client redis.UniversalClient, key string, n int64) (int64, error) {
	pipe := client.Pipeline()
	value := pipe.IncrBy(ctx, key, n)
	pipe.Expire(ctx, key, windowTTL)
	_, err := pipe.Exec(ctx)
	return value.Val(), err
}

// startCounter starts an instance that does for each request what envoyproxy/ratelimit does with
// Redis: INCRBY and EXPIRE in one pipeline, on the key of the clock's second.
func startCounter(client redis.UniversalClient, limit yardstick.FleetLimit) (yardstick.FleetTake, error) {
	maximum := limit.Quota.Rate.N
	return func(ctx context.Context) (bool, error) {
		n, err := count(ctx, client, window(limit, time.Now()), 1)
		return err == nil && n <= maximum, err
	}, nil
}

// syncEvery is the time between two synchronisations.
const syncEvery = 100 * time.Millisecond

// startSynchronised starts an instance that counts in memory and adds its count to Redis every 100
// ms, as Kong's plugins do with sync_rate 0.1.
func startSynchronised(client redis.UniversalClient, limit yardstick.FleetLimit) (yardstick.FleetTake, error) {
	var (
		mu           sync.Mutex
		key          string
		known, added int64 // in Redis as of the last synchronisation, and since then here
		maximum      = limit.Quota.Rate.N
	)
	turn := func() { // to the counter of this second
		if now := window(limit, time.Now()); now != key {
			key, known, added = now, 0, 0
		}
	}
	limit.Go(func(ctx context.Context) {
		for range base.Ticks(ctx, syncEvery) {
			mu.Lock()
			turn()
			current, n := key, added
			mu.Unlock()
			total, err := count(ctx, client, current, n)
			mu.Lock()
			if err == nil && current == key {
				known, added = total, added-n
			}
			mu.Unlock()
		}
	})
	return func(context.Context) (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		if turn(); known+added >= maximum {
			return false, nil
		}
		added++
		return true, nil
	}, nil
}
