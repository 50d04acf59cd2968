package middleware

import (
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// shortenKey shortens the request's key to the form that is counted. It reports whether the key
// stayed whole.
func (r *request) shortenKey(c *candidate) (whole bool) {
	size := len(r.key)
	r.key = r.guard.fitKey(r.key, len(c.prefix))
	return len(r.key) == size
}

// fitKey shortens the part of key after its prefix to the form that is counted.
func (g *Guard) fitKey(key []byte, prefix int) []byte {
	if len(key)-prefix > rules.MaxText {
		key = append(key[:prefix], base.CutKey(key[prefix:], rules.MaxText)...)
	}
	if g.counts == nil {
		return key
	}
	if fitted := g.counts.Fit(key[prefix:]); len(fitted) != len(key)-prefix {
		key = append(key[:prefix], fitted...)
	}
	return key
}

// countKey counts the request's key, if the rule has hot.
func (r *request) countKey(cl *claim, whole bool) {
	c := cl.rule
	if len(c.Hot) == 0 {
		return
	}
	r.addCount(cl, cl.hash, r.key, 1)
	if whole && r.groups.follow { // a cut key has no group
		r.groups.add(r.key[len(c.prefix):], c.ParamsOnly)
	}
}

// addCount adds n requests to the count of a key. For rules that count costs it records that the key
// is charged n times when the request ends, if the handler answers it.
func (r *request) addCount(cl *claim, hash uint64, key []byte, n uint64) {
	switch {
	case cl.rule.Count != rules.Requests:
		for range n {
			r.chargeAtEnd(*cl, hash, key)
		}
	case r.counts:
		r.guard.counts.Add(hash, key, n)
	}
}

// findException returns the exception for the request's key, which must not be cut, or nil.
func (r *request) findException(c *candidate) *exception {
	text := r.key[len(c.prefix):]
	if c.reveals {
		text = r.plainText(c, text)
	}
	return c.except.firstMatch(text)
}

// except returns the limit of the request's key: the limit of an exception, or the rule's own.
// It returns nil if an exception allows or blocks the key.
func (r *request) except(c *candidate) *limitSpec {
	x := r.findException(c)
	if r.trace != nil && x != nil && x.Action != 0 {
		r.trace.addExcepted(c, r.key, x.Action)
	}
	switch {
	case x == nil:
		return c.spec
	case x.Action == rules.Allow:
		return nil
	case x.Action == rules.Block && !r.asks:
		r.postponeRefusal()
		return nil
	case x.Action == rules.Block:
		r.addDenial(&claim{rule: c, spec: c.spec}, &rules.Decision{Reason: rules.ReasonBlocked, Rule: c.ID})
		return nil
	}
	return x.spec
}

// limitCountedKey asks the limit of the request's key, if it has one now.
func (r *request) limitCountedKey(cl *claim) {
	if len(cl.rule.Hot) == 0 {
		if r.trace != nil {
			r.trace.addKey(cl.rule, r.key, cl.spec, nil)
		}
		if r.asks {
			r.limitKey(cl)
		} else {
			r.postpone(cl.spec.limit != nil)
		}
		return
	}
	hot := r.guard.hot.Lookup(cl.hash, r.key)
	if r.trace != nil {
		r.trace.addKey(cl.rule, r.key, cl.spec, hot)
	}
	switch {
	case hot == nil:
	case r.asks:
		r.limitHotKey(cl, hot)
	default:
		r.findShared(cl, hot)
	}
}
