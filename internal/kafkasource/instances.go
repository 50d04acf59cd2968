package kafkasource

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
)

// instancesEvery is the interval at which the instances are published.
const instancesEvery = time.Second

// tellInstances publishes the instances that are live in any of our partitions. One publisher
// does that, as they are the same in all. It also passes them to the workers, since an instance
// that is silent in one partition may be unable to write to it. It logs the instances whose
// clocks are off.
func (s *Source) tellInstances(ctx context.Context) {
	clocks := decode.NewClockLog(s.cfg.Log)
	for range base.Ticks(ctx, instancesEvery) {
		workers := s.ownedWorkers()
		if len(workers) == 0 {
			continue
		}
		heard := make(map[string]time.Time)
		for _, w := range workers {
			if instances := w.instances.Load(); instances != nil {
				for _, i := range *instances {
					heard[i.Name] = base.Later(heard[i.Name], i.Heard)
				}
			}
		}
		for _, w := range workers {
			w.elsewhere.Store(&heard)
		}
		s.recordLive(workers)
		all := make([]published.Instance, 0, len(heard))
		for _, name := range slices.Sorted(maps.Keys(heard)) {
			all = append(all, published.Instance{Name: name, Heard: heard[name]})
		}
		lowest := slices.MinFunc(workers, func(a, b *worker) int { return cmp.Compare(a.partition, b.partition) })
		if p := lowest.publisher.Load(); p != nil {
			(*p).Instances(all)
		}
		clocks.Log(time.Now(), all, offClocks(workers))
	}
}

// liveInstances are the instances that are live in one partition, by the partition's own time.
type liveInstances struct {
	names    []string
	covered  bool
	complete bool // no other instance may return
}

// recordLive records the live instances for workers that start later. The record stays while the
// source has no partition, since a worker that starts after an outage cannot have read their
// records.
func (s *Source) recordLive(workers []*worker) {
	names, complete := make(map[string]bool), false
	for _, w := range workers {
		if l := w.live.Load(); l != nil && l.covered {
			complete = complete || l.complete
			for _, name := range l.names {
				names[name] = true
			}
		}
	}
	if !complete {
		known := s.live.Load()
		if known == nil {
			return
		}
		for _, name := range *known {
			names[name] = true
		}
	}
	all := slices.Collect(maps.Keys(names))
	s.live.Store(&all)
}

// offClocks returns the clocks that are off in any partition, by name, each as in the partition
// where it is furthest off.
func offClocks(workers []*worker) []decode.SenderClock {
	worst := make(map[string]decode.SenderClock)
	for _, w := range workers {
		if clocks := w.clocks.Load(); clocks != nil {
			for _, c := range *clocks {
				if c.Behind.Abs() > worst[c.Name].Behind.Abs() {
					worst[c.Name] = c
				}
			}
		}
	}
	var all []decode.SenderClock
	for _, name := range slices.Sorted(maps.Keys(worst)) {
		all = append(all, worst[name])
	}
	return all
}
