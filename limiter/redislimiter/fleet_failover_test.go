package redislimiter_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter/fleet"
	"github.com/hotparam/hotparam/limiter/redislimiter"
	"github.com/hotparam/hotparam/rules"
)

// A replica that lacks the last writes takes the primary's place under load. All instances
// together are admitted at most one burst and the rate × the lag beyond the bound, and settle with
// the new primary.
func TestFleetFailoverWithLostWrites(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	const n, rate, burst, lag = 5, 1000, 500, 500 * time.Millisecond
	set := testenv.RedisSentinel(t)
	q := &rules.Quota{Rate: rules.Rate{N: rate, Per: time.Second}, Burst: burst}
	judge := newShadow(rate, burst)
	var admitted atomic.Int64
	var work sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer work.Wait()
	defer cancel()
	for range n {
		client, err := hotkeys.NewClient(set.URL())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		store, err := redislimiter.New(client, redislimiter.Config{Namespace: "shop", Timeout: 100 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		f, err := fleet.New(fleet.Config{Lender: store, Instances: func() int { return n }})
		if err != nil {
			t.Fatal(err)
		}
		stock := f.Stock(fleet.StockConfig{Name: "users", Key: "ann", Quota: q, Outage: rules.OutageLocal})
		admit := func() {
			judge.take(true)
			admitted.Add(1)
		}
		work.Go(func() { _ = f.Run(ctx) })
		work.Go(func() { // twice the limit, over all instances
			testenv.Every(ctx, n*time.Second/(2*rate), func(int) {
				if stock.Take(1) {
					admit()
				} else if _, shut := stock.Shut(1); !shut {
					work.Go(func() {
						if stock.Borrow(ctx, 1).Allowed {
							admit()
						}
					})
				}
			})
		})
	}
	time.Sleep(time.Second)
	before := admitted.Load()
	former := set.Primary()
	primary := set.PrimaryServer()
	err := testenv.WithRedis(primary.Addr(), nil, func(c *redis.Client) error {
		// The replica is cut off, and cannot come back. Clients and sentinels do not notice.
		if err := c.Do(ctx, "ACL", "SETUSER", "default", "-psync", "-sync", "-replconf").Err(); err != nil {
			return err
		}
		if err := c.Do(ctx, "CLIENT", "KILL", "TYPE", "replica").Err(); err != nil {
			return err
		}
		return c.Set(ctx, "lost", "1", 0).Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	detached := time.Now()
	time.Sleep(lag)
	set.KillPrimary()
	lost := time.Since(detached)
	present := set.AwaitFailover(former)
	err = testenv.WithRedis(present, nil, func(c *redis.Client) error { return c.Get(ctx, "lost").Err() })
	if err != redis.Nil {
		t.Errorf("no write was lost: %v", err)
	}
	time.Sleep(time.Second) // until all instances have found the new primary
	after := admitted.Load()
	time.Sleep(time.Second)
	recovered := admitted.Load() - after
	cancel()
	work.Wait()
	beyond := burst + rate*lost.Seconds()
	t.Logf("%d admitted before, %d in the second after; the lowest level of one bucket was %.0f, at least %.0f", before, recovered, judge.low, -beyond)
	if judge.low < -beyond || before < rate/2 || recovered < rate/2 {
		t.Error("beyond the bound, or less than half of the limit was used")
	}
}
