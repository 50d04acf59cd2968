package middleware

import (
	"bytes"

	"github.com/hotparam/hotparam"
)

// groups are the groups of the keys that a rule with a share makes of one request. The
// aggregator adds up a group's requests by its keys; what it counts of a request beyond
// the first key is counted under a name of its own, so that it can take it off.
type groups struct {
	follow bool   // the rule has a share, and makes several keys
	texts  []byte // one after the other
	ends   []int
	again  []byte // the name
}

func (s *groups) reset() { s.texts, s.ends = s.texts[:0], s.ends[:0] }

// add reports whether the group of a key with this text was there before, and returns
// it. It is valid until the next call.
func (s *groups) add(text []byte, paramsOnly bool) (group []byte, before bool) {
	start := len(s.texts)
	s.texts = hotparam.AppendGroup(s.texts, text, paramsOnly)
	group = s.texts[start:]
	from := 0
	for _, end := range s.ends {
		if bytes.Equal(s.texts[from:end], group) {
			s.texts = s.texts[:start]
			return group, true
		}
		from = end
	}
	s.ends = append(s.ends, len(s.texts))
	return group, false
}

// countAgain counts the key that was just counted once more, if its group has another
// one of the request.
func (g *Guard) countAgain(s *scratch, c *candidate, t *terms) {
	group, before := s.groups.add(s.key[len(c.prefix):], c.ParamsOnly)
	if !before {
		return
	}
	name := hotparam.AppendAgain(append(s.groups.again[:0], c.prefix...), group)
	s.groups.again = name
	size := len(name)
	if name = g.fit(name, len(c.prefix)); len(name) != size {
		return // cut it would be a key's name; then the total is too high
	}
	hash := hotparam.Hash(name)
	if c.Count == hotparam.Requests {
		g.counts.Add(hash, name, 1)
	} else {
		s.owe(g, c, t, hash, name)
	}
}
