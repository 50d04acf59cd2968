package statsdsink

import (
	"github.com/hotparam/hotparam/collector/internal/former"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// maxPlaces bounds the number of prefixes whose sums continue.
const maxPlaces = 1000

// SetRules implements [collector.Sink]. Counts of removed rules are sent as before:
// an aggregator that has them still, or again, needs them, and others ignore the lines.
func (s *sink) SetRules(rules *rules.Rules) {
	if rules == nil {
		return
	}
	s.forget(rules)
	var places []int
	for i := range rules.Rules {
		rule := &rules.Rules[i]
		r := s.newRule(rule, rules.Namespace)
		if len(rule.Hot) > 0 {
			r.place = s.placeOf(r.prefix)
			places = append(places, r.place)
		}
		s.rules[rule.ID] = r
	}
	groups := s.Capabilities().Groups
	mark, jumps := wire.RulesMark(rules), wire.JumpsMark(rules)
	for _, p := range s.packers {
		if groups {
			p.head.Groups = wire.GroupsMark(rules)
		}
		p.setPlaces(mark, places)
		p.buckets.setRules(jumps)
	}
}

// forget records the removed rules, and drops rules and places beyond the bounds.
func (s *sink) forget(rules *rules.Rules) {
	former.Update(&s.former, s.rules, rules)
	if len(s.places) < maxPlaces {
		return
	}
	clear(s.places) // receivers see that the sums restart
	for _, r := range s.rules {
		r.place = -1
	}
	for _, p := range s.packers {
		clear(p.byRule)
	}
}

func (s *sink) newRule(rule *rules.Rule, namespace string) *sinkRule {
	prefix := rule.CountPrefix(namespace)
	r := &sinkRule{overlaps: rule.Overlaps(), jumps: rule.HasJump(), place: -1, prefix: prefix, head: len(wire.AppendKey([]byte(prefix), s.encoding, nil))}
	switch {
	case len(s.packers) == 1:
		r.home = s.packers[0]
	case rule.Whole():
		r.home = s.packers[s.homes.pick([]byte(rule.Home(namespace)))]
	}
	return r
}

// placeOf returns the place of a prefix's sums. It is permanent, so that receivers can compare
// sums across a change of the rules and back.
func (s *sink) placeOf(prefix string) int {
	place, ok := s.places[prefix]
	if !ok {
		place = len(s.places)
		s.places[prefix] = place
	}
	return place
}

// setPlaces sets the rules whose sums packets state. mark is 0 if none are stated.
func (p *packer) setPlaces(mark uint32, places []int) {
	p.mark, p.places = mark, places
	for _, place := range places {
		for len(p.byRule) < 2*(place+1) {
			p.byRule = append(p.byRule, 0)
		}
	}
}

// appendRuleSums appends the sums of the rules in force.
func (p *packer) appendRuleSums(dst []byte) []byte {
	p.stated = p.stated[:0]
	for _, place := range p.places {
		p.stated = append(p.stated, p.byRule[2*place:2*place+2]...)
	}
	return wire.AppendRuleSums(dst, p.mark, p.stated)
}
