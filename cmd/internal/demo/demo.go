// Package demo runs the whole of hotparam in one process, on real traffic and with nothing to
// install. It has three API instances with the middleware (HTTP servers on loopback) and an
// embedded Redis-compatible server. The aggregator takes counts from its UDP listener or from an
// embedded Kafka. A real access log is replayed over HTTP at its original speed. The parts
// communicate over sockets, as they would between machines. The same API without limits and the
// same with on_hot get the same requests, for comparison ([Variant]).
package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// Constants of the demo's rule and fleet.
const (
	Namespace = "demo"
	Route     = "GET /Archives/edgar/data"
	Param     = "cik" // the company's number
	Instances = 3
)

// Rules returns the demo's rules. A company's filings are hot at 10 requests per second over all
// instances, and each instance then serves 5 of them per second.
func Rules() *rules.Rules {
	route, err := rules.ParseRoute(Route)
	if err != nil {
		panic(err) // a constant
	}
	second := func(n int64) rules.Rate { return rules.Rate{N: n, Per: time.Second} }
	return &rules.Rules{
		Namespace: Namespace,
		Version:   "demo",
		Rules: []rules.Rule{{
			ID:    "company",
			Match: rules.Match{Route: route},
			By:    rules.By{Kind: rules.ByNames, Names: []rules.Param{{Name: Param}}},
			Hot:   []rules.Threshold{rules.NewThreshold(second(10))},
			Limit: &rules.Limit{Quota: rules.Quota{Rate: second(5), Burst: 5}, Mode: rules.ModeLimit, Scope: rules.ScopeInstance},
		}},
	}
}

// Demo is one run of the demo.
type Demo struct {
	redis     *embeddedRedis
	client    redis.UniversalClient // reads hot keys for snapshots
	transport transport
	apis      [Variants][]*api
	databases [Variants]*database
	traffic   *traffic
	exact     *exact
}

// New starts the embedded servers and opens all ports. [Demo.Run] does the rest and closes them.
// If New fails, it closes everything that it opened. The transport is [StatsD] or [Kafka].
func New(ctx context.Context, transport string, log *slog.Logger) (d *Demo, err error) {
	rules := Rules()
	d = &Demo{exact: newExact(&rules.Rules[0].Hot[0], Instances)}
	defer func() {
		if err != nil {
			d.abandon()
			d, err = nil, fmt.Errorf("demo: %w", err)
		}
	}()
	if d.redis, err = startRedis(); err != nil {
		return d, err
	}
	if d.client, err = d.redis.client(); err != nil {
		return d, err
	}
	if d.transport, err = newTransport(ctx, transport, rules, d.redis, log); err != nil {
		return d, err
	}
	crowd := newCrowd()
	for v := range d.databases {
		d.databases[v] = &database{crowd: crowd}
	}
	makeAPI := [Variants]func(n int, database *database) (*api, error){
		WithoutLimits: func(_ int, database *database) (*api, error) { return newAPI(ctx, database, log) },
		WithLimits: func(n int, database *database) (*api, error) {
			return d.newLimitedAPI(ctx, n, rules, database, log)
		},
		WithOnHot: func(_ int, database *database) (*api, error) { return d.newSharingAPI(ctx, rules, database, log) },
	}
	var urls [Variants][]string
	for v, open := range makeAPI {
		for n := range instancesOf[v] {
			a, err := open(n, d.databases[v])
			if err != nil {
				return d, err
			}
			d.apis[v], urls[v] = append(d.apis[v], a), append(urls[v], a.url())
		}
	}
	d.traffic, err = newTraffic(ctx, crowd, urls)
	return d, err
}

// abandon closes everything that New has opened. Each part closes its resources when its run
// function is called with an ended context.
func (d *Demo) abandon() {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for _, a := range slices.Concat(d.apis[:]...) {
		_ = a.run(over) // New's error is the one to report
	}
	if d.transport != nil {
		for _, run := range d.transport.stages() {
			_ = run(over)
		}
		d.transport.close()
	}
	if d.redis != nil {
		d.redis.close()
	}
}

// Run replays the log repeatedly until ctx ends or a part fails. It then ends the parts in the
// order of the data, so that all sent requests are counted and all counts are published.
func (d *Demo) Run(ctx context.Context) error {
	defer d.redis.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var serve []func(context.Context) error
	for _, a := range slices.Concat(d.apis[:]...) {
		serve = append(serve, a.run)
	}
	defer d.transport.close()
	stages := []*stage{start(ctx, cancel, serve...)}
	for _, run := range d.transport.stages() {
		stages = append(stages, start(ctx, cancel, run))
	}
	d.traffic.run(ctx)
	d.exact.settle(time.Now())
	var errs []error
	for _, s := range stages {
		s.stop()
		errs = append(errs, s.parts.Wait())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	return nil
}

// stage is a group of parts that end together, after those of the previous stage.
type stage struct {
	parts errgroup.Group
	stop  context.CancelFunc
}

// start runs parts until the stage is stopped, even if ctx has ended. A part that fails calls
// fail.
func start(ctx context.Context, fail func(), parts ...func(context.Context) error) *stage {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &stage{stop: stop}
	for _, run := range parts {
		s.parts.Go(func() error {
			err := run(ctx)
			if err != nil {
				fail()
			}
			return err
		})
	}
	return s
}

// RedisAddr returns the address of the embedded server, for redis-cli.
func (d *Demo) RedisAddr() string { return d.redis.Addr() }

// Transport describes the transport of counts and its address.
func (d *Demo) Transport() string { return d.transport.description() }

// URLs returns the base URLs of the API instances with limits.
func (d *Demo) URLs() (urls []string) {
	for _, a := range d.apis[WithLimits] {
		urls = append(urls, a.url())
	}
	return urls
}

// CountedKey is one hot key as published in Redis, with the number of its requests that all
// instances have passed and refused since it became hot.
type CountedKey struct {
	published.Hot
	Passed, Refused int64
}

// Moment is the state of the demo at one moment.
type Moment struct {
	At                       time.Time
	Allowed, Limited, Failed int64
	Hot                      []CountedKey // highest rate first
	Keys                     int64        // distinct keys that the aggregator counts; at most a second old
	Enforce                  Percentiles
	LogTime                  time.Time // current time in the log
	// CrowdLeft is the remaining time of the flash crowd, or 0 if there is none.
	CrowdLeft time.Duration
	// Effects are recent, and zero for variants that get no requests yet.
	Effects [Variants]Effect
}

// Compare makes the demo send each request from now on to the APIs of all variants.
func (d *Demo) Compare() { d.traffic.compare.Store(true) }

// StartCrowd starts a flash crowd of [CrowdRate] on [CrowdKey], or extends the current one. It
// also calls Compare.
func (d *Demo) StartCrowd(length time.Duration) {
	d.Compare()
	d.traffic.crowd.start(length)
}

// StopCrowd ends the flash crowd.
func (d *Demo) StopCrowd() { d.traffic.crowd.stop() }

// Snapshot returns the current state while [Demo.Run] runs. It asks Redis for the hot keys, with
// the deadline of ctx. It is safe for concurrent use.
func (d *Demo) Snapshot(ctx context.Context) (Moment, error) {
	hot, err := hotkeys.List(ctx, d.client, Namespace)
	if err != nil {
		return Moment{}, err
	}
	now := time.Now()
	s := Moment{
		At:        now,
		CrowdLeft: d.traffic.crowd.remaining(now),
		Failed:    d.traffic.senders[WithLimits].failed.Load(),
		Hot:       make([]CountedKey, len(hot)),
		Keys:      d.transport.stats().Detector.Keys,
		Enforce:   d.exact.percentiles(),
		LogTime:   d.traffic.now(),
	}
	for v := range Variants {
		s.Effects[v] = d.recentEffect(v, now)
	}
	s.Allowed, s.Limited = d.exact.answers()
	byKey := make(map[rules.Key]*CountedKey, len(hot))
	for i, h := range hot {
		s.Hot[i].Hot = h
		byKey[h.Key] = &s.Hot[i]
	}
	for _, a := range d.apis[WithLimits] {
		for _, k := range a.guard.HotKeys() {
			if sum := byKey[k.Key]; sum != nil {
				sum.Passed += k.Passed
				sum.Refused += k.Refused
			}
		}
	}
	return s, nil
}
