package middleware

import "github.com/hotparam/hotparam"

// A key is built in the scratch's buffer: the rule's id, a space, the route, the
// parameters.

// keys builds each of the keys that the rule makes of the request, and has it
// used. Whatever the order of the parameters, those of all requests come in one order,
// so that no two requests wait for permits of each other's.
func (g *Guard) keys(s *scratch, c *candidate, d *hotparam.Decision) {
	if c.overlaps {
		g.countTotal(s, c)
	}
	switch c.By.Kind {
	case hotparam.ByEach:
		s.load(c.values)
		each := s.params.Singles(nil, &s.route.set.Secrets)
		g.withheld.add(each.Hidden)
		s.beginKeys(c, each.Len())
		for i := range each.Len() {
			s.startKey(c)
			s.key = s.params.AppendSingle(s.key, &each, i)
			g.use(s, c, d)
		}
		g.endKeys(s, c, each.More, d)
	case hotparam.ByCombinations:
		s.load(c.values)
		all := s.params.Combine(c.By.Names, &s.route.set.Secrets)
		g.withheld.add(all.Hidden)
		s.beginKeys(c, all.Len())
		for set := all.Next(0); set != 0; set = all.Next(set) {
			s.startKey(c)
			s.key = s.params.AppendCombination(s.key, &all, set)
			g.use(s, c, d)
		}
		g.endKeys(s, c, all.More, d)
	default:
		g.oneKey(s, c, d)
	}
}

// oneKey is keys by all parameters, or by names, which mostly have one value each.
func (g *Guard) oneKey(s *scratch, c *candidate, d *hotparam.Decision) {
	s.startKey(c)
	start := len(s.key)
	n, ok := g.appendParams(s, c)
	if !ok {
		g.pairings(s, c, d)
		return
	}
	if n == 0 {
		if !c.bare() {
			return // no key
		}
		s.key = s.key[:start-1] // a route alone, without "?"
	}
	g.use(s, c, d)
}

// appendParams appends the parameters of a rule that makes one key, and returns how
// many they are; ok is false if some of them have several values, which makes several
// keys. A query that needs no decoding need not be parsed for that.
func (g *Guard) appendParams(s *scratch, c *candidate) (n int, ok bool) {
	secrets := &s.route.set.Secrets
	if !s.loaded && c.values == nil {
		var hidden int
		if s.key, n, hidden, ok = hotparam.AppendPlain(s.key, s.req.Query, c.By.Names, secrets); ok {
			g.withheld.add(hidden)
			return n, true
		}
	}
	s.load(c.values)
	if c.By.Kind == hotparam.ByNames {
		s.key, n, ok = s.params.AppendNamed(s.key, c.By.Names)
		return n, ok
	}
	s.key, n = s.params.AppendAll(s.key, secrets)
	g.withheld.add(s.params.Len() - n)
	return n, true
}

// pairings is oneKey where names have several values: each pairing of them is a key.
func (g *Guard) pairings(s *scratch, c *candidate, d *hotparam.Decision) {
	pairs := s.params.Pair(c.By.Names)
	s.beginKeys(c, pairs.Len())
	for i := range pairs.Len() {
		s.startKey(c)
		s.key = s.params.AppendPairing(s.key, i)
		g.use(s, c, d)
	}
	g.endKeys(s, c, pairs.More, d)
}

// beginKeys prepares for so many keys of one rule.
func (s *scratch) beginKeys(c *candidate, keys int) {
	s.groups.follow = c.addsUp && keys > 1 && s.beginGroups()
}

// endKeys counts what the keys' groups have too much, and uses the key for what a request
// has beyond its keys, if there is more.
func (g *Guard) endKeys(s *scratch, c *candidate, more bool, d *hotparam.Decision) {
	if s.groups.follow {
		s.groups.follow = false
		g.countAgain(s, c)
	}
	if !more {
		return
	}
	g.more.Add(1)
	s.startKey(c)
	s.key = hotparam.AppendMore(s.key)
	g.use(s, c, d)
}

// bare tells whether a request that has none of the rule's parameters makes a
// key, of the route alone.
func (r *rule) bare() bool { return r.By.Kind == hotparam.ByAll && !r.ParamsOnly }

// startKey begins a key's bytes with all that stands before the parameters: the
// rule's id, a space, the route, "?".
func (s *scratch) startKey(c *candidate) {
	if c.head == nil {
		s.writeHead(c)
		return
	}
	s.key = append(s.key[:0], c.head...)
}

// writeHead is startKey on a route that the request itself names.
func (s *scratch) writeHead(c *candidate) {
	s.key = append(append(append(s.key[:0], c.prefix...), s.req.Method...), ' ')
	if c.text != "" {
		s.key = append(s.key, c.text...)
	} else {
		s.key = hotparam.AppendPath(s.key, s.req.Path)
	}
	s.key = append(s.key, '?')
}

// fit makes of a key with so long a prefix what it is counted by.
func (g *Guard) fit(key []byte, prefix int) []byte {
	if len(key)-prefix > hotparam.MaxText {
		key = append(key[:prefix], hotparam.Cut(key[prefix:], hotparam.MaxText)...)
	}
	if fitted := g.counts.Fit(key[prefix:]); len(fitted) != len(key)-prefix {
		key = append(key[:prefix], fitted...)
	}
	return key
}

// countTotal counts the request itself for a rule that makes several keys of it:
// what a key's count is a part of cannot be told from the counts of the keys. A
// route whose text is too long has no total, for a cut text would be a key.
func (g *Guard) countTotal(s *scratch, c *candidate) {
	t := c.total
	if t.key == nil {
		s.startKey(c)
		s.key = append(s.key, hotparam.Total...)
		t = total{s.key, hotparam.Hash(s.key)}
	}
	text := t.key[len(c.prefix):]
	if len(text) > hotparam.MaxText || len(g.counts.Fit(text)) != len(text) {
		return
	}
	if c.Count == hotparam.Requests {
		g.counts.Add(t.hash, t.key, 1)
	} else {
		s.owe(g, c, c.terms, t.hash, t.key)
	}
}
