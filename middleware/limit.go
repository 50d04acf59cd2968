package middleware

import (
	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/limiter"
)

// one holds the request to a rule with neither hot nor by, which has one bucket.
func (g *Guard) one(s *scratch, c *candidate, d *hotparam.Decision) {
	if t := &c.terms; t.single != nil {
		s.owe(c, t, 0, nil)
		g.ask(s, c, t, nil, t.single, d)
	}
}

// ask takes a token from the bucket of a rule, or of a hot key, or, of a rule that
// counts costs, asks for one.
func (g *Guard) ask(s *scratch, c *candidate, t *terms, h *held, bucket *limiter.TokenBucket, d *hotparam.Decision) {
	var got hotparam.Decision
	took := taken{bucket: bucket, held: h}
	if c.Count == hotparam.Requests {
		got, took.n = bucket.Take(g.now(s), 1), 1
	} else {
		got = bucket.Peek(g.now(s), 1)
	}
	switch {
	case h == nil:
	case got.Allowed:
		h.passed.Add(1)
	default:
		h.refused.Add(1)
	}
	g.judge(s, c, t, d, &got, &took)
}

// use counts the key that was built, if the rule is about hot keys, and takes a
// token where the key has a limit now. What costs more or less than one is
// counted when it is done: until then a token must be there, and is not taken.
func (g *Guard) use(s *scratch, c *candidate, d *hotparam.Decision) {
	t := &c.terms
	if c.except != nil {
		if t = g.except(s, c, t, s.key[len(c.prefix):], d); t == nil {
			return
		}
	}
	s.key = g.fit(s.key, len(c.prefix))
	hash := hotparam.Hash(s.key)
	if len(c.Hot) == 0 {
		g.useKeyed(s, c, t, hash, d)
		return
	}
	if c.Count == hotparam.Requests {
		g.counts.Add(hash, s.key, 1)
	} else {
		s.owe(c, t, hash, s.key)
	}
	if entry := g.hot.Lookup(hash, s.key); entry != nil {
		g.useHot(s, c, t, entry.Payload, d)
	}
}

// except looks for an exception of a key's text, not cut. It tells the terms that
// hold, t if there is none; nil: the rule has no more to say.
func (g *Guard) except(s *scratch, c *candidate, t *terms, text []byte, d *hotparam.Decision) *terms {
	x := c.except.find(text)
	switch {
	case x == nil:
		return t
	case x.Action == hotparam.Allow:
		return nil
	case x.Action == hotparam.Block:
		g.block(s, c, d)
		return nil
	}
	return x.terms
}

// useKeyed asks the bucket that each key of a rule without hot has.
func (g *Guard) useKeyed(s *scratch, c *candidate, t *terms, hash uint64, d *hotparam.Decision) {
	if t.keyed == nil {
		return
	}
	s.owe(c, t, hash, s.key)
	var got hotparam.Decision
	took := taken{keyed: t.keyed, hash: hash, from: len(s.takenKeys)}
	if c.Count == hotparam.Requests {
		got, took.n = t.keyed.Take(g.now(s), hash, s.key, 1), 1
		s.takenKeys = append(s.takenKeys, s.key...)
	} else {
		got = t.keyed.Peek(g.now(s), hash, s.key, 1)
	}
	took.to = len(s.takenKeys)
	g.judge(s, c, t, d, &got, &took)
}

// useHot asks the bucket of a hot key.
func (g *Guard) useHot(s *scratch, c *candidate, t *terms, h *held, d *hotparam.Decision) {
	h.origins.note(c.name, s.req.Caller)
	if bucket := h.bucketFor(t); bucket != nil {
		g.ask(s, c, t, h, bucket, d)
	}
}

// judge adds what one limiter got to the request's decision: any denial denies,
// the longest wait wins; of limits that allow, the tightest is told, and only
// where there is none what let the request pass otherwise.
func (g *Guard) judge(s *scratch, c *candidate, t *terms, d, got *hotparam.Decision, took *taken) {
	got.Rule = c.ID
	if got.Allowed {
		within := got.Reason == hotparam.ReasonWithin
		if within {
			s.taken = append(s.taken, *took)
		}
		switch told := d.Reason; {
		case s.denied:
		case told == hotparam.ReasonNone, within && (told != hotparam.ReasonWithin || got.Remaining < d.Remaining):
			tell(d, got)
		}
		return
	}
	g.deny(s, t, d, got)
}

// block refuses a value that an exception blocks, for ever.
func (g *Guard) block(s *scratch, c *candidate, d *hotparam.Decision) {
	g.deny(s, &c.terms, d, &hotparam.Decision{Reason: hotparam.ReasonBlocked, Rule: c.ID})
}

// deny adds a denial, by terms that may only be tried out. What is blocked has
// the longest wait.
func (g *Guard) deny(s *scratch, t *terms, d, got *hotparam.Decision) {
	if t.limit != nil && t.limit.Mode == hotparam.ModeShadow {
		g.shadowed.Add(1)
		if d.Reason == hotparam.ReasonNone {
			d.Reason, d.Rule = hotparam.ReasonShadow, got.Rule
		}
		return
	}
	if !s.denied || d.Reason != hotparam.ReasonBlocked && (got.Reason == hotparam.ReasonBlocked || got.RetryAfter > d.RetryAfter) {
		tell(d, got)
	}
	s.denied = true
}

// tell makes d what got is, field by field: a copy of the whole right after its
// bytes were written waits until they have left the processor's buffer.
func tell(d, got *hotparam.Decision) {
	d.Allowed, d.Reason = got.Allowed, got.Reason
	d.Limit, d.Remaining, d.RetryAfter = got.Limit, got.Remaining, got.RetryAfter
	d.Rule = got.Rule
}
