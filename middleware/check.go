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
	if s.route.byPath {
		s.canonicalPath()
	}
	g.decide(s, &d)
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
	s.timed, s.denied = false, false
	g.pool.Put(s)
}

// decide applies the rules of the scratch's route. It writes the decision where
// the caller wants it, since copies of it would cost as much as a rule.
func (g *Guard) decide(s *scratch, d *hotparam.Decision) {
	d.Allowed = true
	matched := false
	for i := range s.route.rules {
		c := &s.route.rules[i]
		if c.picks && !g.matches(s, c) {
			continue
		}
		matched = true
		if c.Ignore {
			*d = hotparam.Decision{Allowed: true, Reason: hotparam.ReasonIgnored, Rule: c.ID}
			return
		}
		g.apply(s, c, d)
		if g.rules.Evaluate == hotparam.EvaluateFirst {
			break
		}
	}
	if !matched && g.rules.DenyNoMatch {
		*d = hotparam.Decision{Reason: hotparam.ReasonNoMatch}
		s.denied = true
	}
	if s.denied {
		s.giveBack()
		if g.opts.shadow {
			g.shadowed.Add(1)
			*d = hotparam.Decision{Allowed: true, Reason: hotparam.ReasonShadow, Rule: d.Rule}
			return
		}
		g.limited.Add(1)
	}
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
func (g *Guard) apply(s *scratch, c *candidate, d *hotparam.Decision) {
	switch c.By.Kind {
	case hotparam.ByNone:
		if c.single != nil {
			g.judge(s, c, d, c.single.Take(g.now(s), 1), taken{bucket: c.single})
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
			s.key = s.params.AppendOne(s.key, i)
			g.use(s, c, d)
		}
		return
	}
	s.load(c.values)
	s.startKey(c)
	start := len(s.key)
	var n int
	if c.By.Kind == hotparam.ByNames {
		s.key, n = s.params.AppendNamed(s.key, c.By.Names)
	} else {
		s.key, n = s.params.AppendAll(s.key, &g.rules.Secrets)
	}
	if n == 0 {
		if c.By.Kind == hotparam.ByNames || c.ParamsOnly {
			return // no key
		}
		s.key = s.key[:start-1] // a route alone, without "?"
	}
	g.use(s, c, d)
}

// use counts the key that was built, if the rule is about hot keys, and takes a
// token where the key has a limit now.
func (g *Guard) use(s *scratch, c *candidate, d *hotparam.Decision) {
	s.key = g.fit(s.key, len(c.prefix))
	hash := hotparam.Hash(s.key)
	if c.Hot == nil {
		got := c.keyed.Take(g.now(s), hash, s.key, 1)
		from := len(s.takenKeys)
		s.takenKeys = append(s.takenKeys, s.key...)
		g.judge(s, c, d, got, taken{keyed: c.keyed, hash: hash, from: from, to: len(s.takenKeys)})
		return
	}
	g.counts.Add(hash, s.key, 1)
	entry := g.hot.Lookup(hash, s.key)
	if entry == nil || entry.Payload.bucket == nil {
		return
	}
	got := entry.Payload.bucket.Take(g.now(s), 1)
	if got.Allowed {
		entry.Payload.passed.Add(1)
	} else {
		entry.Payload.refused.Add(1)
	}
	g.judge(s, c, d, got, taken{bucket: entry.Payload.bucket, held: entry.Payload})
}

// judge adds what one limiter got to the request's decision: any denial denies,
// the longest wait wins; of limits that allow, the tightest is told, and only
// where there is none what let the request pass otherwise.
func (g *Guard) judge(s *scratch, c *candidate, d *hotparam.Decision, got hotparam.Decision, t taken) {
	got.Rule = c.ID
	if got.Allowed {
		within := got.Reason == hotparam.ReasonWithin
		if within {
			s.taken = append(s.taken, t)
		}
		switch told := d.Reason; {
		case s.denied:
		case told == hotparam.ReasonNone, within && (told != hotparam.ReasonWithin || got.Remaining < d.Remaining):
			*d = got
		}
		return
	}
	if c.Limit.Mode == hotparam.ModeShadow {
		g.shadowed.Add(1)
		if d.Reason == hotparam.ReasonNone {
			d.Reason, d.Rule = hotparam.ReasonShadow, c.ID
		}
		return
	}
	if !s.denied || got.RetryAfter > d.RetryAfter {
		*d = got
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
