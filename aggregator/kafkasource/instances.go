package kafkasource

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/hotparam/hotparam"
)

// instancesEvery is how often the instances are told.
const instancesEvery = time.Second

// tellInstances tells the instances that are heard in any of our partitions: the
// workers, as an instance that is silent in one of them may not be able to write
// it, and one publisher, as they are the same in all.
func (s *Source) tellInstances(ctx context.Context) {
	ticker := time.NewTicker(instancesEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		workers := s.present()
		if len(workers) == 0 {
			continue
		}
		heard := make(map[string]time.Time)
		for _, w := range workers {
			if instances := w.instances.Load(); instances != nil {
				for _, i := range *instances {
					heard[i.Name] = later(heard[i.Name], i.Heard)
				}
			}
		}
		for _, w := range workers {
			w.elsewhere.Store(&heard)
		}
		all := make([]hotparam.Instance, 0, len(heard))
		for _, name := range slices.Sorted(maps.Keys(heard)) {
			all = append(all, hotparam.Instance{Name: name, Heard: heard[name]})
		}
		lowest := slices.MinFunc(workers, func(a, b *worker) int { return cmp.Compare(a.partition, b.partition) })
		if p := lowest.publisher.Load(); p != nil {
			(*p).Instances(all)
		}
	}
}
