package hotkeys

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/wire"
)

// suspected is what the aggregator tells besides the hot keys: those that may be
// hot, by the part of the keys that they are of, and who sends counts. Not safe
// for concurrent use.
type suspected struct {
	parts     map[int]map[string]float64 // part → member → rate
	held      int                        // in all parts
	overflow  uint64                     // suspects that found the set full
	instances []hotparam.Instance
}

// replace makes these the suspects of a part; it tells whether there are new
// ones. Of more than can be published it keeps those with the highest rates.
func (s *suspected) replace(part int, suspects []hotparam.Hot) (fresh bool) {
	if len(suspects) > wire.MaxSuspects {
		suspects = slices.Clone(suspects)
		slices.SortFunc(suspects, func(a, b hotparam.Hot) int { return cmp.Compare(b.Rate, a.Rate) })
		s.overflow += uint64(len(suspects) - wire.MaxSuspects)
		suspects = suspects[:wire.MaxSuspects]
	}
	old := s.parts[part]
	s.held -= len(old)
	next := make(map[string]float64, len(suspects))
	for _, h := range suspects {
		member := h.Key.String()
		next[member] = h.Rate
		if _, ok := old[member]; ok {
			continue
		}
		fresh = true
		if s.held+len(next) > wire.MaxSuspects {
			s.overflow++
		}
	}
	s.held += len(next)
	delete(s.parts, part)
	if len(next) > 0 {
		s.parts[part] = next
	}
	return fresh
}

// appendTop appends member and rate of the suspects that ought to be published.
func (s *suspected) appendTop(args []any) []any {
	all := make(map[string]float64, s.held)
	for _, part := range s.parts {
		maps.Copy(all, part)
	}
	members := slices.Collect(maps.Keys(all))
	if len(members) > wire.MaxSuspects {
		slices.SortFunc(members, func(a, b string) int {
			return cmp.Or(cmp.Compare(all[b], all[a]), cmp.Compare(a, b))
		})
		members = members[:wire.MaxSuspects]
	}
	for _, member := range members {
		args = append(args, member, all[member])
	}
	return args
}

// instanceLife is for how long an instance counts after it was last heard of.
const instanceLife = 10 * time.Second

// appendInstances appends name and age, in milliseconds, of the instances that
// live.
func (s *suspected) appendInstances(args []any, now time.Time) []any {
	for _, i := range s.instances {
		if age := max(0, now.Sub(i.Heard)); age < instanceLife {
			args = append(args, i.Name, age.Milliseconds())
		}
	}
	return args
}

// Suspects notes the keys of one part of the aggregator that may be hot; they
// take the place of what was told of that part before. It does not block. New
// ones are published at once, rates and what is over with the next renewal.
func (p *Publisher) Suspects(part int, suspects []hotparam.Hot) {
	readable := make([]hotparam.Hot, 0, len(suspects))
	for _, h := range suspects {
		if err := namable(h); err != nil {
			p.refuse(h, err)
			continue
		}
		readable = append(readable, h)
	}
	p.mu.Lock()
	fresh := p.suspected.replace(part, readable)
	p.mu.Unlock()
	if !fresh {
		return
	}
	select {
	case p.suspect <- struct{}{}:
	default: // one is pending, and it will find these too
	}
}

// Instances notes which instances send counts; they are published with the next
// renewal. It does not block. Of more than [wire.MaxInstances] those that were
// heard of last are.
func (p *Publisher) Instances(instances []hotparam.Instance) {
	instances = slices.DeleteFunc(slices.Clone(instances), func(i hotparam.Instance) bool { return !wire.ValidInstance(i.Name) })
	if len(instances) > wire.MaxInstances {
		slices.SortFunc(instances, func(a, b hotparam.Instance) int { return b.Heard.Compare(a.Heard) })
		instances = instances[:wire.MaxInstances]
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.suspected.instances = instances
}
