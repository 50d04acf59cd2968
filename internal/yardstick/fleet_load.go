package yardstick

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// fleetLoad is the load of one measurement.
type fleetLoad struct {
	FleetConfig
	demand  float64
	policy  FleetPolicy
	clients []*countedClient
	rand    *rand.Rand
}

// fleetRequest is a request and its outcome. Times are in ns since the measurement began.
type fleetRequest struct {
	due          int64 // time at which it is to arrive
	instance     int
	began, ended int64
	admitted     bool
	err          error
}

// requests draws the requests of a measurement: a Poisson process.
func (l *fleetLoad) requests() (requests []fleetRequest) {
	perNano := l.demand * float64(l.Quota.Rate.N) / float64(l.Quota.Rate.Per)
	pick := func() int { return l.rand.IntN(l.Instances) }
	if l.Zipf {
		zipf := NewZipf(l.rand, 1, l.Instances)
		pick = func() int { return zipf.Draw() - 1 }
	}
	for t := 0.0; ; {
		if t += l.rand.ExpFloat64() / perNano; t >= float64(l.For) {
			return requests
		}
		requests = append(requests, fleetRequest{due: int64(t), instance: pick()})
	}
}

// measure starts the policy on all instances, and sends requests at their times, whether earlier
// ones were answered or not.
func (l *fleetLoad) measure(ctx context.Context, limit FleetLimit) (row FleetRow, err error) {
	var work sync.WaitGroup
	defer work.Wait()
	running, stop := context.WithCancel(ctx)
	defer stop()
	limit.Go = func(f func(context.Context)) { work.Go(func() { f(running) }) }
	takes := make([]FleetTake, len(l.clients))
	for i, client := range l.clients {
		if takes[i], err = l.policy.Start(client.UniversalClient, limit); err != nil {
			return row, fmt.Errorf("bench: %s: %w", l.policy.Name, err)
		}
	}
	requests, asks := l.requests(), context.WithValue(ctx, byRequest{}, true)
	cpu, err := l.redisCPU(ctx)
	if err != nil {
		return row, err
	}
	trips, settlements := l.count()
	var asked sync.WaitGroup
	start := time.Now()
	for i := range requests {
		r := &requests[i]
		if wait := time.Duration(r.due) - time.Since(start); wait > 0 {
			time.Sleep(wait)
		}
		asked.Go(func() {
			r.began = int64(time.Since(start))
			r.admitted, r.err = takes[r.instance](asks)
			r.ended = int64(time.Since(start))
		})
		if ctx.Err() != nil {
			break
		}
	}
	asked.Wait()
	passed := time.Since(start).Seconds()
	if ctx.Err() != nil {
		return row, ctx.Err()
	}
	row = l.row(requests)
	tripsNow, settlementsNow := l.count()
	row.Calls, row.Settlements = float64(tripsNow-trips)/passed, float64(settlementsNow-settlements)/passed
	cpuNow, err := l.redisCPU(ctx)
	row.RedisCPU = (cpuNow - cpu) / passed
	return row, err
}

// count returns the round trips of all instances, and how many of them no request made.
func (l *fleetLoad) count() (trips, settlements int64) {
	for _, c := range l.clients {
		trips += c.trips.Load()
		settlements += c.settlements.Load()
	}
	return trips, settlements
}

// redisCPU returns the processor time that Redis has used, in seconds.
func (l *fleetLoad) redisCPU(ctx context.Context) (seconds float64, err error) {
	info, err := l.clients[0].Info(ctx, "cpu").Result()
	for line := range strings.Lines(info) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name == "used_cpu_user" || name == "used_cpu_sys" {
			used, _ := strconv.ParseFloat(value, 64) // a server without the figure has used 0
			seconds += used
		}
	}
	return seconds, err
}

// countedClient is a client of Redis that counts its round trips.
type countedClient struct {
	redis.UniversalClient
	trips       atomic.Int64
	settlements atomic.Int64 // those that no request made
}

// byRequest marks the context of a request.
type byRequest struct{}

func (c *countedClient) count(ctx context.Context) {
	c.trips.Add(1)
	if ctx.Value(byRequest{}) == nil {
		c.settlements.Add(1)
	}
}

// DialHook implements [redis.Hook].
func (c *countedClient) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (c *countedClient) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.count(ctx)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements [redis.Hook].
func (c *countedClient) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.count(ctx)
		return next(ctx, cmds)
	}
}
