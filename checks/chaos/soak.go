package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/checks/chaos/oracle"
	"github.com/hotparam/hotparam/internal/testenv"
)

// boundedFigure is something that must not grow.
type boundedFigure struct {
	name  string
	unit  string
	slack float64 // growth that is always allowed
}

// figures are flat if the median of the last third of the samples exceeds that of the first third
// by at most a tenth or the slack. The first quarter of a soak is left out, since tables and
// pools fill then.
var figures = []boundedFigure{
	{"resident", "MB", 6},
	{"heap", "MB", 3},
	{"goroutines", "", 8},
	{"descriptors", "", 8},
	{"connections", "", 8},
}

// maxGrowth is the largest ratio of the last third to the first.
const maxGrowth = 1.1

// figureSeries holds the samples of one figure of one process.
type figureSeries struct {
	process string
	figure  boundedFigure
	values  []float64
}

// thirds returns the medians of the first and the last third after the warm-up.
func (s *figureSeries) thirds() (first, last float64) {
	warm := s.values[len(s.values)/4:]
	n := len(warm) / 3
	if n == 0 {
		return 0, 0
	}
	return median(warm[:n]), median(warm[len(warm)-n:])
}

// grows reports whether the figure is not flat.
func (s *figureSeries) grows() bool {
	first, last := s.thirds()
	return last > max(first*maxGrowth, first+s.figure.slack)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// SoakReport is the outcome of a soak.
type SoakReport struct {
	Lasted     time.Duration
	Requests   int
	Violations []oracle.Violation
	series     []*figureSeries
}

// Broken reports whether something grew or an invariant was broken.
func (r *SoakReport) Broken() bool {
	return len(r.Violations) > 0 || slices.ContainsFunc(r.series, (*figureSeries).grows)
}

func (r *SoakReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v, %d requests, %d violations; medians of the first and the last third, after a quarter to warm up:\n\n", r.Lasted.Round(time.Second), r.Requests, len(r.Violations))
	fmt.Fprintf(&b, "| %-14s | %-13s | %8s | %8s | %8s | %-5s |\n| --- | --- | ---: | ---: | ---: | --- |\n", "process", "figure", "first", "last", "most", "")
	for _, s := range r.series {
		first, last := s.thirds()
		verdict := "flat"
		if s.grows() {
			verdict = "GROWS"
		}
		fmt.Fprintf(&b, "| %-14s | %-13s | %8.1f | %8.1f | %8.1f | %-5s |\n", s.process, strings.TrimSpace(s.figure.name+" "+s.figure.unit), first, last, slices.Max(s.values), verdict)
	}
	for _, v := range r.Violations {
		fmt.Fprintln(&b, v)
	}
	return b.String()
}

// Soak runs a fleet under a steady load of mixed keys, without any fault, and samples the
// resources of its processes.
func Soak(tb testing.TB, c Config) *SoakReport {
	tb.Helper()
	c.Scenario = "calm"
	if err := c.validate(); err != nil {
		tb.Fatal(err)
	}
	var k soak
	c.begun = func(r *run, ctx context.Context, work *sync.WaitGroup) {
		work.Go(func() { k.mix(ctx, r) })
		work.Go(func() { k.sample(ctx, r, max(c.Duration/180, time.Second)) })
	}
	report := Run(tb, c)
	return &SoakReport{Lasted: c.Duration, Requests: report.Requests, Violations: report.Violations, series: k.series}
}

type soak struct{ series []*figureSeries }

// mix requests ever new values, some of which become hot for a while.
func (k *soak) mix(ctx context.Context, r *run) {
	rng := rand.New(rand.NewPCG(r.c.Seed, 3))
	var asking sync.WaitGroup
	defer asking.Wait()
	testenv.Every(ctx, 10*time.Millisecond, func(n int) {
		a := r.apis[n%instances]
		key := fmt.Sprintf("wave-%d", n/1500) // hot for 15 s
		if n%3 == 2 {
			key = fmt.Sprintf("rare-%d", rng.Uint32())
		}
		route := "search"
		if n%10 == 9 {
			route, key = "bucket", fmt.Sprintf("customer-%d", rng.IntN(2000))
		}
		asking.Go(func() {
			if status, _, err := r.load.sendRequest(a, route, key); err != nil || status >= 500 {
				r.recordViolation(oracle.Violation{At: r.now(), Invariant: oracle.I4, Subject: "GET /" + route + " at " + a.name, Text: fmt.Sprintf("status %d, %v", status, err)})
			}
		})
	})
}

// sample samples all processes at a pace.
func (k *soak) sample(ctx context.Context, r *run, pace time.Duration) {
	testenv.Every(ctx, pace, func(int) {
		for _, g := range r.aggregators {
			heap, _ := g.metric(ctx, r.load.client[0], "go_memstats_heap_alloc_bytes")
			goroutines, err := g.metric(ctx, r.load.client[0], "go_goroutines")
			if err == nil {
				k.add(&g.child, heap, goroutines)
			}
		}
		for _, a := range r.apis {
			if s, err := a.state(ctx, r.load.client[a.index], true); err == nil {
				k.add(&a.child, float64(s.Heap), float64(s.Goroutines))
			}
		}
		if r.redis.single != nil {
			k.addRedis(ctx, r.redis.single.Addr())
		}
	})
}

func (k *soak) add(p *child, heap, goroutines float64) {
	resident, _ := p.current().Memory()
	descriptors, connections := p.current().Descriptors()
	for i, v := range []float64{float64(resident) / 1e6, heap / 1e6, goroutines, float64(descriptors), float64(connections)} {
		k.value(p.name, figures[i], v)
	}
}

// addRedis adds the memory and connections of Redis, which hotparam also causes.
func (k *soak) addRedis(ctx context.Context, addr string) {
	_ = testenv.WithRedis(addr, nil, func(c *redis.Client) error { // sampled again soon
		info, err := c.InfoMap(ctx, "memory", "clients").Result()
		if err != nil {
			return err
		}
		var used, clients float64
		_, _ = fmt.Sscan(info["Memory"]["used_memory"], &used)
		_, _ = fmt.Sscan(info["Clients"]["connected_clients"], &clients)
		k.value("redis", boundedFigure{"heap", "MB", 3}, used/1e6)
		k.value("redis", boundedFigure{"connections", "", 8}, clients)
		return nil
	})
}

func (k *soak) value(process string, f boundedFigure, v float64) {
	i := slices.IndexFunc(k.series, func(s *figureSeries) bool { return s.process == process && s.figure.name == f.name })
	if i < 0 {
		i = len(k.series)
		k.series = append(k.series, &figureSeries{process: process, figure: f})
	}
	k.series[i].values = append(k.series[i].values, v)
}
