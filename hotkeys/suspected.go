package hotkeys

import (
	"maps"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
)

// suspected holds the rest of a publisher's report, in addition to hot keys: the suspects, by
// part of the aggregator, and the instances. It is not safe for concurrent use.
type suspected struct {
	shares    map[string]*guarantee      // shares of published.MaxSuspects by rule
	parts     map[int]map[string]*wanted // suspects by part and member
	held      int                        // number of suspects in all parts
	overflow  uint64                     // number of times that a suspect found the set full
	instances []published.Instance
}

// newSuspected returns an empty set whose places are divided equally between the rules.
func newSuspected(rules []string) suspected {
	return suspected{shares: newGuarantees(published.MaxSuspects, rules), parts: make(map[int]map[string]*wanted)}
}

// replace replaces the suspects of a part and reports whether there are new ones. If there are
// more than can be published, it keeps the first by rank.
func (s *suspected) replace(part int, suspects []published.Hot) (fresh bool) {
	next := make([]*wanted, len(suspects))
	for i, h := range suspects {
		next[i] = &wanted{Hot: h, member: h.Key.String()}
	}
	if len(next) > published.MaxSuspects {
		s.overflow += uint64(len(next) - published.MaxSuspects)
		next = s.first(next)
	}
	old, members := s.parts[part], make(map[string]*wanted, len(next))
	s.held -= len(old)
	for _, w := range next {
		members[w.member] = w
		if _, ok := old[w.member]; ok {
			continue
		}
		fresh = true
		if s.held+len(members) > published.MaxSuspects {
			s.overflow++
		}
	}
	s.held += len(members)
	delete(s.parts, part)
	if len(members) > 0 {
		s.parts[part] = members
	}
	return fresh
}

// first returns the suspects that come first by rank, as many as can be published.
func (s *suspected) first(all []*wanted) []*wanted {
	first := make([]*wanted, 0, published.MaxSuspects)
	for _, r := range rank(all, s.shares)[:published.MaxSuspects] {
		first = append(first, r.wanted)
	}
	return first
}

// appendTop appends member and rate of each suspect to publish.
func (s *suspected) appendTop(args []any) []any {
	known := make(map[string]*wanted, s.held)
	for _, part := range s.parts {
		maps.Copy(known, part)
	}
	all := slices.Collect(maps.Values(known))
	if len(all) > published.MaxSuspects {
		all = s.first(all)
	}
	for _, w := range all {
		args = append(args, w.member, w.Rate)
	}
	return args
}

// instanceLife is how long an instance is counted after it last sent counts.
const instanceLife = 10 * time.Second

// appendInstances appends name and age, in milliseconds, of each live instance.
func (s *suspected) appendInstances(args []any, now time.Time) []any {
	for _, i := range s.instances {
		if age := max(0, now.Sub(i.Heard)); age < instanceLife {
			args = append(args, i.Name, age.Milliseconds())
		}
	}
	return args
}

// Suspects replaces the suspects of one part of the aggregator: keys that may be hot. It does not
// block. New suspects are published at once; changed rates and removals are published with the
// next renewal.
func (p *Publisher) Suspects(part int, suspects []published.Hot) {
	readable := make([]published.Hot, 0, len(suspects))
	for _, h := range suspects {
		if err := namable(h); err != nil {
			p.refuse(h, err)
			continue
		}
		readable = append(readable, p.entry(h))
	}
	p.mu.Lock()
	fresh := p.suspected.replace(part, readable)
	p.mu.Unlock()
	if fresh {
		base.Notify(p.suspect)
	}
}

// Instances replaces the instances that send counts, which are published with the next renewal.
// It does not block. If there are more than [published.MaxInstances], the ones last heard are
// published. Invalid names are ignored.
func (p *Publisher) Instances(instances []published.Instance) {
	instances = slices.DeleteFunc(slices.Clone(instances), func(i published.Instance) bool { return !wire.ValidInstance(i.Name) })
	if len(instances) > published.MaxInstances {
		slices.SortFunc(instances, func(a, b published.Instance) int { return b.Heard.Compare(a.Heard) })
		instances = instances[:published.MaxInstances]
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.suspected.instances = instances
}
