package redislimiter_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/permits"
	"github.com/hotparam/hotparam/limiter/redislimiter"
	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/rules"
)

// Each project has ten requests a second over all instances. While Redis is unavailable, this
// instance decides by its share of them.
func Example() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", MaxRetries: -1, ContextTimeoutEnabled: true})
	store, err := redislimiter.New(client, redislimiter.Config{Namespace: "shop"})
	if err != nil {
		panic(err)
	}
	safe, err := limiter.NewFailover(store, limiter.FailoverConfig{Instances: func() int { return 3 }})
	if err != nil {
		panic(err)
	}
	projects, err := limiter.New(safe, "projects", limiter.PerSecond(10))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	d, err := projects.Allow(ctx, "project:123")
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Allowed, d.Remaining, redislimiter.CellReply(d))
}

// Ten requests a second for each project, decided by a server that has the module redis-cell.
func ExampleCell() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", MaxRetries: -1, ContextTimeoutEnabled: true})
	cell, err := redislimiter.NewCell(client, redislimiter.CellConfig{Namespace: "shop"})
	if err != nil {
		panic(err)
	}
	projects, err := limiter.New(cell, "projects", limiter.PerSecond(10))
	if err != nil {
		panic(err)
	}
	d, err := projects.Allow(context.Background(), "project:123")
	if errors.Is(err, redislimiter.ErrNoCell) {
		fmt.Println("load the module, or use a Store")
		return
	}
	if err != nil {
		panic(err)
	}
	fmt.Println(redislimiter.CellReply(d))
}

// Eight reports at a time, over all instances.
func ExampleSemaphore() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", MaxRetries: -1, ContextTimeoutEnabled: true})
	slots, err := redislimiter.NewSemaphore(client, redislimiter.SemaphoreConfig{Namespace: "shop"})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { _ = slots.Run(ctx) }() // renews held leases
	lease, d, err := slots.Acquire(ctx, "reports", semaphore.Request{Permits: 8, Queue: 100, Within: time.Second})
	if err != nil {
		panic(err)
	}
	if !d.Allowed {
		fmt.Println("busy, try again in", d.RetryAfter)
		return
	}
	defer lease.Release()
}

// Five mails a second, in order, over all instances.
func ExampleNewPermits() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", MaxRetries: -1, ContextTimeoutEnabled: true})
	mails, err := redislimiter.NewPermits(client, redislimiter.PermitsConfig{Namespace: "shop", Name: "mails"})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	if _, err := mails.TrySetRate(ctx, permits.Rate{Rate: rules.Rate{N: 5, Per: time.Second}}); err != nil {
		panic(err)
	}
	if err := mails.Acquire(ctx, 1); err != nil {
		panic(err)
	}
}
