package middleware

import (
	"strings"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/limiter"
)

// Request is what rules look at.
type Request struct {
	Method string
	// Path is the path as it travels, escaped.
	Path string
	// Query is the raw query, without "?".
	Query string
	// Pattern is the route's pattern as the router knows it ("GET /u/{id}",
	// "/u/{id}"); empty when it is not known: then keys have the path itself.
	Pattern string
}

// Check counts a request and decides on it.
func (g *Guard) Check(req Request) (d hotparam.Decision) {
	defer g.failOpen(&d)
	s := g.begin()
	if req.Pattern != "" {
		s.route = g.rules.ofPattern(req.Method, req.Pattern)
	} else {
		s.route = g.rules.unknown
	}
	s.req = req
	s.canonicalPath()
	d = g.decide(s)
	g.end(s)
	return d
}

// failOpen turns a panic of ours into a request that passes.
func (g *Guard) failOpen(d *hotparam.Decision) {
	if recover() != nil {
		g.panics.Add(1)
		*d = hotparam.Decision{Allowed: true, Reason: hotparam.ReasonOpen}
	}
}

// scratch is what a check works with; it is reused.
type scratch struct {
	req    Request
	route  *route
	params hotparam.Params
	loaded bool            // params holds the request's
	values *hotparam.Route // whose path values params holds
	key    []byte
	path   []byte
	now    time.Duration
	timed  bool

	decision  hotparam.Decision
	denied    bool
	taken     []taken
	takenKeys []byte
}

// taken is a token that is given back if another rule refuses.
type taken struct {
	bucket *limiter.TokenBucket
	held   *held // whose bucket it is; nil: no hot key's

	keyed    *limiter.Keyed
	hash     uint64
	from, to int // the key in takenKeys
}

func (g *Guard) begin() *scratch { return g.pool.Get().(*scratch) }

// end makes a scratch ready for the next request. It keeps no string of this
// one, and no buffer that a monster of a request has grown.
func (g *Guard) end(s *scratch) {
	const keep = 64 << 10
	if cap(s.key) > keep || cap(s.takenKeys) > keep || len(s.req.Query)+len(s.req.Path) > keep || s.params.Len() > keep/64 {
		return
	}
	s.params.Reset()
	clear(s.taken)
	s.taken, s.takenKeys = s.taken[:0], s.takenKeys[:0]
	s.req, s.route, s.loaded, s.values = Request{}, nil, false, nil
	s.timed, s.denied, s.decision = false, false, hotparam.Decision{}
	g.pool.Put(s)
}

// decide applies the rules of the scratch's route.
func (g *Guard) decide(s *scratch) hotparam.Decision {
	s.decision.Allowed = true
	matched := false
	for i := range s.route.rules {
		c := &s.route.rules[i]
		if !g.matches(s, c) {
			continue
		}
		matched = true
		if c.Ignore {
			return hotparam.Decision{Allowed: true, Reason: hotparam.ReasonIgnored, Rule: c.ID}
		}
		g.apply(s, c)
		if g.rules.Evaluate == hotparam.EvaluateFirst {
			break
		}
	}
	if !matched && g.rules.DenyNoMatch {
		s.decision = hotparam.Decision{Reason: hotparam.ReasonNoMatch}
		s.denied = true
	}
	if s.denied {
		s.giveBack()
		if g.opts.shadow {
			g.shadowed.Add(1)
			return hotparam.Decision{Allowed: true, Reason: hotparam.ReasonShadow, Rule: s.decision.Rule}
		}
		g.limited.Add(1)
	}
	return s.decision
}

// matches tells whether the request is one for the rule.
func (g *Guard) matches(s *scratch, c *candidate) bool {
	if c.byPath && !c.Match.Route.Matches(s.req.Method, s.req.Path) {
		return false
	}
	for _, want := range c.Match.Query {
		s.load(c.values)
		if !s.has(want) {
			return false
		}
	}
	return true
}

func (s *scratch) has(want hotparam.QueryMatch) bool {
	for i := range s.params.Len() {
		p := s.params.At(i)
		if p.Source == hotparam.Query && p.Name == want.Name && wildcard(want.Value, p.Value) {
			return true
		}
	}
	return false
}

// apply counts the rule's keys and takes their tokens.
func (g *Guard) apply(s *scratch, c *candidate) {
	switch c.By.Kind {
	case hotparam.ByNone:
		if c.single != nil {
			d := c.single.Take(g.now(s), 1)
			g.judge(s, c, d, taken{bucket: c.single})
		}
		return
	case hotparam.ByEach:
		s.load(c.values)
		for i := range s.params.Len() {
			p := s.params.At(i)
			if i > 0 && p == s.params.At(i-1) || g.rules.Secrets.Hides(p.Name) {
				continue // a request counts a key once, however often it repeats it
			}
			s.startKey(c)
			s.question(c)
			s.key = s.params.AppendOne(s.key, i)
			g.use(s, c)
		}
		return
	}
	s.load(c.values)
	s.startKey(c)
	bare := len(s.key)
	s.question(c)
	var n int
	if c.By.Kind == hotparam.ByNames {
		s.key, n = s.params.AppendNamed(s.key, c.By.Names)
	} else {
		s.key, n = s.params.AppendAll(s.key, &g.rules.Secrets)
	}
	if n == 0 {
		if c.By.Kind == hotparam.ByNames || bare == len(c.prefix) {
			return // no key
		}
		s.key = s.key[:bare]
	}
	g.use(s, c)
}

// use counts the key that was built, if the rule is about hot keys, and takes a
// token where the key has a limit now.
func (g *Guard) use(s *scratch, c *candidate) {
	s.key = g.fit(s.key, len(c.prefix))
	if c.Hot == nil {
		hash := hotparam.Hash(s.key)
		d := c.keyed.Take(g.now(s), hash, s.key, 1)
		from := len(s.takenKeys)
		s.takenKeys = append(s.takenKeys, s.key...)
		g.judge(s, c, d, taken{keyed: c.keyed, hash: hash, from: from, to: len(s.takenKeys)})
		return
	}
	hash := hotparam.Hash(s.key)
	g.counts.Add(hash, s.key, 1)
	entry := g.hot.Lookup(hash, s.key)
	if entry == nil || entry.Payload.bucket == nil {
		return
	}
	d := entry.Payload.bucket.Take(g.now(s), 1)
	if d.Allowed {
		entry.Payload.passed.Add(1)
	} else {
		entry.Payload.refused.Add(1)
	}
	g.judge(s, c, d, taken{bucket: entry.Payload.bucket, held: entry.Payload})
}

// judge adds one limiter's decision to the request's: any denial denies, the
// longest wait wins; of limits that allow, the tightest is told, and only where
// there is none what let the request pass otherwise.
func (g *Guard) judge(s *scratch, c *candidate, d hotparam.Decision, t taken) {
	d.Rule = c.ID
	if d.Allowed {
		within := d.Reason == hotparam.ReasonWithin
		if within {
			s.taken = append(s.taken, t)
		}
		switch told := s.decision.Reason; {
		case s.denied:
		case told == hotparam.ReasonNone, within && (told != hotparam.ReasonWithin || d.Remaining < s.decision.Remaining):
			s.decision = d
		}
		return
	}
	if c.Limit.Mode == hotparam.ModeShadow {
		g.shadowed.Add(1)
		if s.decision.Reason == hotparam.ReasonNone {
			s.decision.Reason, s.decision.Rule = hotparam.ReasonShadow, c.ID
		}
		return
	}
	if !s.denied || d.RetryAfter > s.decision.RetryAfter {
		s.decision = d
	}
	s.denied = true
}

// giveBack undoes what the limits that allow have taken, since another refused.
func (s *scratch) giveBack() {
	for _, t := range s.taken {
		if t.held != nil {
			t.held.passed.Add(-1)
			t.held.refused.Add(1)
		}
		if t.bucket != nil {
			t.bucket.GiveBack(1)
		} else {
			t.keyed.GiveBack(t.hash, s.takenKeys[t.from:t.to], 1)
		}
	}
}

// now is read once for a request, and only by one that meets a limit.
func (g *Guard) now(s *scratch) time.Duration {
	if !s.timed {
		s.now, s.timed = g.opts.clock(), true
	}
	return s.now
}

// wildcard matches a value against a pattern in which "*" stands for any run of
// bytes.
func wildcard(pattern, value string) bool {
	head, rest, found := strings.Cut(pattern, "*")
	if !found {
		return value == pattern
	}
	if !strings.HasPrefix(value, head) {
		return false
	}
	value = value[len(head):]
	for {
		part, more, found := strings.Cut(rest, "*")
		if !found {
			return strings.HasSuffix(value, part)
		}
		at := strings.Index(value, part)
		if at < 0 {
			return false
		}
		value, rest = value[at+len(part):], more
	}
}
