package middleware

import (
	"bytes"

	"github.com/hotparam/hotparam"
)

// groups are the groups of the keys that a rule makes of one request. Where the rule has
// a share, or its keys overlap, the aggregator adds up a group's requests by its keys.
// What it counts of a request beyond the first key is counted under a name of its own, so
// that it can take it off.
type groups struct {
	follow bool   // the rule is one of these, and the request may have several keys of a group
	texts  []byte // one after the other
	all    []group
	again  []byte // the name
}

// group is one group.
type group struct {
	end   int    // in the texts
	again uint64 // how many keys it has beyond the first
}

// beginGroups prepares for the keys of one rule, and reports whether the request may have
// several of a group.
func (s *scratch) beginGroups() bool {
	if !s.params.RepeatsNames() {
		return false
	}
	s.groups.texts, s.groups.all = s.groups.texts[:0], s.groups.all[:0]
	return true
}

// add notes a key with this text, which was counted.
func (s *groups) add(text []byte, paramsOnly bool) {
	start := len(s.texts)
	s.texts = hotparam.AppendGroup(s.texts, text, paramsOnly)
	from := 0
	for i := range s.all {
		of := &s.all[i]
		if bytes.Equal(s.texts[from:of.end], s.texts[start:]) {
			s.texts = s.texts[:start]
			of.again++
			return
		}
		from = of.end
	}
	s.all = append(s.all, group{end: len(s.texts)})
}

// countAgain counts what the groups have beyond their first keys.
func (g *Guard) countAgain(s *scratch, c *candidate) {
	from := 0
	for i := range s.groups.all {
		of := &s.groups.all[i]
		text := s.groups.texts[from:of.end]
		from = of.end
		if of.again == 0 {
			continue
		}
		name := hotparam.AppendAgain(append(s.groups.again[:0], c.prefix...), text)
		s.groups.again = name
		size := len(name)
		if name = g.fit(name, len(c.prefix)); len(name) != size {
			continue // cut it would be a key's name; then the total is too high
		}
		hash := hotparam.Hash(name)
		if c.Count == hotparam.Requests {
			g.counts.Add(hash, name, of.again)
			continue
		}
		for range of.again { // each is charged what the request costs
			s.owe(g, c, c.terms, hash, name)
		}
	}
}
