package middleware

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/hotset"
	"github.com/hotparam/hotparam/limiter"
)

// one holds the request to a rule with neither hot nor a key, which has one bucket.
func (g *Guard) one(s *scratch, c *candidate, d *hotparam.Decision) {
	t := c.terms
	if t.limit == nil {
		return
	}
	if t.single != nil {
		s.owe(g, c, t, 0, nil)
		g.ask(s, c, t, nil, t.single, d)
	}
	g.later(s, c, t, nil, everyone)
}

// ask takes a token from the bucket of a rule, or of a hot key, or, of a rule that
// counts costs, asks for one.
func (g *Guard) ask(s *scratch, c *candidate, t *terms, h *held, b limiter.Bucket, d *hotparam.Decision) {
	ask := g.askOf(s, c, t)
	got := b.Do(g.now(s), ask)
	h.note(got.Allowed)
	if g.judge(s, c, t, d, &got.Decision) {
		s.taken = append(s.taken, taken{bucket: b, held: h, n: got.Taken, mark: got.Mark, origin: got.Origin})
	}
}

// askOf is what a request wants of the terms. It is written at once: a copy of what was
// written in parts waits, see tell.
func (g *Guard) askOf(s *scratch, c *candidate, t *terms) limiter.Ask {
	var (
		kind   limiter.Kind
		left   int64
		within time.Duration
	)
	if p := t.limit.Priority; p != nil {
		left = keep(t.quota.Load().Burst, s.class(c, p), len(p.First)+1)
	}
	switch {
	case c.Count != hotparam.Requests:
		kind = limiter.Peek
	case t.waits() && !g.opts.shadow:
		kind, within = limiter.Reserve, s.req.within(t.limit.Wait)
	}
	return limiter.Ask{Kind: kind, N: 1, Keep: left, Within: within}
}

// keep is what a request of this class leaves of a burst.
func keep(burst int64, class, classes int) int64 {
	i, n := int64(class), int64(classes)
	return burst/n*i + burst%n*i/n
}

// class is the request's by a rule's priority: the first that a value of the
// parameter has, or the last.
func (s *scratch) class(c *candidate, p *hotparam.Priority) int {
	s.load(c.values)
	class := len(p.First)
	for i := range s.params.Len() {
		if q := s.params.At(i); q.Name == p.Name && q.Source == p.Source {
			if at := slices.Index(p.First, q.Value); at >= 0 {
				class = min(class, at)
			}
		}
	}
	return class
}

// within is how long the request may wait, at most so long.
func (r *Request) within(most time.Duration) time.Duration {
	if r.Context == nil {
		return most
	}
	if end, ok := r.Context.Deadline(); ok {
		return max(0, min(most, time.Until(end)))
	}
	return most
}

// later notes what is asked of the terms once this process's limits allow: those who
// decide for all instances, and permits.
func (g *Guard) later(s *scratch, c *candidate, t *terms, h *held, key string) {
	rated := t.quota.Load() != nil
	if rated && t.exact() {
		s.exact = append(s.exact, exact{candidate: c, terms: t, held: h, op: limiter.Op{
			Quota: t.quota.Load(), Name: t.name, Key: key, Ask: g.askOf(s, c, t),
		}})
	}
	if t.permits == nil {
		return
	}
	w := wanted{terms: t, held: h, rule: c.ID, key: key}
	if rated {
		w.held = nil // it is counted by its rate
	}
	if p := t.limit.Priority; p != nil {
		w.class = s.class(c, p)
	}
	s.wanted = append(s.wanted, w)
}

// asksLater tells whether the key's text is needed for that.
func (t *terms) asksLater() bool { return t.permits != nil || t.exact() && t.quota.Load() != nil }

// everyone stands for the key where a rule has none.
const everyone = "*"

// use counts the key that was built, if the rule is about hot keys, and takes a
// token where the key has a limit now. What costs more or less than one is
// counted when it is done: until then a token must be there, and is not taken.
func (g *Guard) use(s *scratch, c *candidate, d *hotparam.Decision) {
	t := c.terms
	if c.except != nil {
		if t = g.except(s, c, t, s.key[len(c.prefix):], d); t == nil {
			return
		}
	}
	size := len(s.key)
	s.key = g.fit(s.key, len(c.prefix))
	hash := hotparam.Hash(s.key)
	if len(c.Hot) == 0 {
		g.useKeyed(s, c, t, hash, d)
		return
	}
	if c.Count == hotparam.Requests {
		g.counts.Add(hash, s.key, 1)
	} else {
		s.owe(g, c, t, hash, s.key)
	}
	if s.groups.follow && len(s.key) == size { // one that was cut has no group
		s.groups.add(s.key[len(c.prefix):], c.ParamsOnly)
	}
	if entry := g.hot.Lookup(hash, s.key); entry != nil {
		g.useHot(s, c, t, entry, d)
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
	if t.limit == nil {
		return
	}
	if t.keyed != nil {
		s.owe(g, c, t, hash, s.key)
		got := t.keyed.Do(g.now(s), hash, s.key, g.askOf(s, c, t))
		if g.judge(s, c, t, d, &got.Decision) && got.Taken > 0 {
			from := len(s.takenKeys)
			s.takenKeys = append(s.takenKeys, s.key...)
			s.taken = append(s.taken, taken{keyed: t.keyed, hash: hash, from: from, to: len(s.takenKeys), n: got.Taken, mark: got.Mark, origin: got.Origin})
		}
	}
	if t.asksLater() {
		g.later(s, c, t, nil, string(s.key[len(c.prefix):]))
	}
}

// useHot asks the bucket of a hot key, unless it is spared.
func (g *Guard) useHot(s *scratch, c *candidate, t *terms, entry *hotset.Entry[*held], d *hotparam.Decision) {
	h := entry.Payload
	h.origins.note(c.name, s.req.Caller)
	if t.limit == nil {
		return
	}
	if entry.Hot.Spared {
		h.note(true)
		return
	}
	if b := h.bucketFor(t, g.opts.clock); b != nil {
		g.ask(s, c, t, h, b, d)
	}
	if t.asksLater() {
		g.later(s, c, t, h, string(s.key[len(c.prefix):]))
	}
}

// judge adds what one limiter got to the request's decision, and tells whether it is
// within that limit: any denial denies, the longest wait wins; of limits that allow,
// the tightest is told, and only where there is none what let the request pass
// otherwise.
func (g *Guard) judge(s *scratch, c *candidate, t *terms, d, got *hotparam.Decision) (within bool) {
	got.Rule = c.ID
	if !got.Allowed {
		g.deny(&s.ruling, t, d, got)
		return false
	}
	within = got.Reason == hotparam.ReasonWithin
	s.delay = max(s.delay, got.Delay)
	switch told := d.Reason; {
	case s.denied:
	case told == hotparam.ReasonNone, within && (told != hotparam.ReasonWithin || got.Remaining < d.Remaining):
		s.tell(t, d, got)
	}
	return within
}

// block refuses a value that an exception blocks, for ever.
func (g *Guard) block(s *scratch, c *candidate, d *hotparam.Decision) {
	g.deny(&s.ruling, c.terms, d, &hotparam.Decision{Reason: hotparam.ReasonBlocked, Rule: c.ID})
}

// deny adds a denial, by terms that may only be tried out. What is blocked has
// the longest wait.
func (g *Guard) deny(r *ruling, t *terms, d, got *hotparam.Decision) {
	if t.limit != nil && t.limit.Mode == hotparam.ModeShadow {
		g.shadowed.Add(1)
		if d.Reason == hotparam.ReasonNone {
			d.Reason, d.Rule = hotparam.ReasonShadow, got.Rule
		}
		return
	}
	if !r.denied || d.Reason != hotparam.ReasonBlocked && (got.Reason == hotparam.ReasonBlocked || got.RetryAfter > d.RetryAfter) {
		r.tell(t, d, got)
	}
	r.denied = true
}

// tell makes d what got is, field by field: a copy of the whole right after its
// bytes were written waits until they have left the processor's buffer. Its delay is
// waited for, and so not told.
func (r *ruling) tell(t *terms, d, got *hotparam.Decision) {
	r.decider = t
	d.Allowed, d.Reason = got.Allowed, got.Reason
	d.Limit, d.Remaining = got.Limit, got.Remaining
	d.RetryAfter, d.ResetAfter = got.RetryAfter, got.ResetAfter
	d.Rule = got.Rule
}
