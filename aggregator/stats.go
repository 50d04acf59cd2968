package aggregator

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/capacity"
	"github.com/hotparam/hotparam/internal/published"
)

// DetectorCounters are the figures of a detector that add up over its parts.
type DetectorCounters struct {
	Keys      int64 // keys with a count of their own
	Hot       int64 // keys that are hot and listed
	Explained int64 // keys that are hot but not listed, as a listed key explains them
	Usual     int64 // keys that are listed as usual
	Spared    int64 // usual keys that are not limited, as another key explains the rise
	Suspects  int64 // keys that may be hot
	Memory    int64 // memory of the keys in bytes
	Evicted   int64 // keys that were evicted
	NoRoom    int64 // times that a hot key got no entry with its text, for lack of memory
	Late      int64 // counts that arrived too late for any pane
}

// DetectorStats are the counters and gauges of a detector.
type DetectorStats struct {
	DetectorCounters
	Floor  int64   // most that can be hidden of any key, of all rules
	Floors []int64 // floors by rule number
	// Reached is the readers' time up to which all shards have worked. It is zero if none has
	// reported yet, and for a detector without shards. While a source runs it is at most some
	// seconds old, whether packets arrive or not.
	Reached time.Time
	// Pools are the pools of rules that find hot keys by their cost.
	Pools []PoolStats
}

// PoolStats are the figures of a pool.
type PoolStats struct {
	Name   string
	Keys   map[published.HoldStage]int // number of keys by the stage of their hold
	Routes []RouteStats
}

// RouteStats are the figures of a route, by a rule that finds hot keys by their cost.
type RouteStats struct {
	Rule, Route string
	Rate        float64 // requests a second in the last window of [capacity.Window]
	Seen        capacity.Seen
}

// Stats returns the counters and gauges.
func (d *Detector) Stats() DetectorStats {
	s := DetectorStats{Floors: make([]int64, len(d.rules))}
	s.Suspects, s.NoRoom = int64(len(d.suspects.list)), d.noRoom
	s.Pools = d.costs.stats()
	for _, p := range d.costs.pools {
		s.Hot += int64(len(p.hot))
	}
	for _, r := range d.watches {
		i := r.number
		for _, w := range r.hot {
			if w.listed {
				s.Hot++
				if w.usual {
					s.Usual++
				}
				if w.spared {
					s.Spared++
				}
			} else {
				s.Explained++
			}
		}
		s.Floors[i] = d.Floor(i)
		s.Floor = max(s.Floor, s.Floors[i])
		var keys, late int64 // each view has the same keys and counts
		for _, v := range r.views {
			keys, late = max(keys, int64(v.Keys())), max(late, v.Late())
			s.Memory += v.memory()
			s.Evicted += v.Evicted()
		}
		if r.hours != nil {
			s.Memory += r.hours.Used()
		}
		s.Keys += keys
		s.Late += late
	}
	return s
}

// stats returns the figures of the pools.
func (c *costs) stats() (all []PoolStats) {
	for _, p := range c.pools {
		s := PoolStats{Name: p.name, Keys: make(map[published.HoldStage]int), Routes: p.capacities.list()}
		for _, h := range p.hot {
			s.Keys[h.Hold.Stage]++
		}
		all = append(all, s)
	}
	return all
}

// Merge adds the counters and gauges of another part.
func (s *DetectorStats) Merge(part *DetectorStats) {
	base.AddCounters(&s.DetectorCounters, &part.DetectorCounters)
	s.Floor = max(s.Floor, part.Floor)
	for _, p := range part.Pools { // each is in one part, and briefly in two after a change of the rules
		if !slices.ContainsFunc(s.Pools, func(o PoolStats) bool { return o.Name == p.Name }) {
			s.Pools = append(s.Pools, p)
		}
	}
	if !part.Reached.IsZero() && (s.Reached.IsZero() || part.Reached.Before(s.Reached)) {
		s.Reached = part.Reached
	}
	for len(s.Floors) < len(part.Floors) { // a shard that has not reported has none
		s.Floors = append(s.Floors, 0)
	}
	for i, floor := range part.Floors {
		s.Floors[i] = max(s.Floors[i], floor)
	}
}

// Floor returns the most that can be hidden of any key in one of the windows of a rule, given
// by its number.
func (d *Detector) Floor(rule int) int64 {
	r := d.rules[rule]
	if r == nil {
		return 0
	}
	floor := int64(0)
	for _, v := range r.views {
		floor = max(floor, v.Floor())
	}
	return floor
}
