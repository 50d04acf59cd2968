package middleware

import (
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/keytext"
	"github.com/hotparam/hotparam/rules"
)

// A key is built in the request's buffer from the rule's id, a space, the route and the
// parameters.

// useKeys builds and uses each key that the rule makes from the request. Keys come in the same
// order for all requests, whatever the order of the parameters, so that requests cannot
// deadlock on permits.
func (r *request) useKeys(c *candidate) {
	if c.overlaps {
		r.countTotal(c)
	}
	switch c.By.Kind {
	case rules.ByEach, rules.ByCombinations:
		params := r.loadParams(c)
		all := params.Combine(&c.By, &r.route.set.Secrets)
		r.countWithheld(all.Hidden)
		r.beginKeys(c, all.Len())
		for set := all.Next(0); set != 0; set = all.Next(set) {
			r.startKey(c)
			r.key = params.AppendCombination(r.key, &all, set)
			r.useKey(c)
		}
		r.endKeys(c, all.More)
	default:
		r.useOneKey(c)
	}
}

// useOneKey implements useKeys for rules by all parameters or by names, which usually make one key.
func (r *request) useOneKey(c *candidate) {
	r.startKey(c)
	start := len(r.key)
	n, ok := r.appendParams(c)
	if !ok {
		r.usePairings(c)
		return
	}
	switch {
	case n > 0, r.guard.opts.limitsBare:
	case !c.allowsBare():
		return // no key
	default:
		r.key = r.key[:start-1] // the route alone, without "?"
	}
	r.useKey(c)
}

// appendParams appends the parameters of a rule that makes one key, and returns their
// number. ok is false if a name has several values, which make several keys. A query that
// needs no decoding is not parsed.
func (r *request) appendParams(c *candidate) (n int, ok bool) {
	secrets := &r.route.set.Secrets
	if !r.params.loaded && c.values == nil && !c.keyReaders && !c.redacts {
		var hidden int
		if r.key, n, hidden, ok = keytext.AppendPlain(r.key, r.in.Query, c.By.Names, secrets); ok {
			r.countWithheld(hidden)
			return n, true
		}
	}
	params := r.loadParams(c)
	if c.By.Kind == rules.ByNames {
		r.key, n, ok = params.AppendNamed(r.key, c.By.Names)
		return n, ok
	}
	r.key, n = params.AppendAll(r.key, secrets)
	r.countWithheld(params.Len() - params.Named() - n)
	return n, true
}

// countWithheld counts parameters that make no key because they look secret.
func (r *request) countWithheld(n int) {
	if r.counts {
		r.guard.withheld.add(n)
	}
}

// usePairings implements useOneKey for names with several values. Each pairing of values is a key.
func (r *request) usePairings(c *candidate) {
	params := &r.params.list
	pairs := params.Pair(c.By.Names)
	r.beginKeys(c, pairs.Len())
	for i := range pairs.Len() {
		r.startKey(c)
		r.key = params.AppendPairing(r.key, i)
		r.useKey(c)
	}
	r.endKeys(c, pairs.More)
}

// beginKeys prepares for n keys of one rule.
func (r *request) beginKeys(c *candidate, n int) {
	r.groups.follow = c.addsUp && n > 1 && r.beginGroups()
}

// endKeys ends the keys of one rule. If the rule makes more keys than are used, endKeys uses
// one key for all others.
func (r *request) endKeys(c *candidate, more bool) {
	if r.groups.follow {
		r.groups.follow = false
		r.countAgain(c)
	}
	if !more {
		return
	}
	if r.counts {
		r.guard.stats.More.Add(1)
	}
	r.startKey(c)
	r.key = base.AppendMore(r.key)
	r.useKey(c)
}

// useKey counts the key that was built, if the rule has hot, and asks the key's limit, if it
// has one now. For rules that count costs it records the key for the request's end, and only
// asks whether there is a permit.
func (r *request) useKey(c *candidate) {
	if r.controlled.controls != nil {
		r.useControlledKey(c)
		return
	}
	cl := claim{rule: c, spec: c.spec}
	if c.except != nil {
		if cl.spec = r.except(c); cl.spec == nil {
			return
		}
	}
	whole := r.shortenKey(c)
	cl.hash = rules.Hash(r.key)
	r.countKey(&cl, whole)
	r.limitCountedKey(&cl)
}

// shortenKey shortens the request's key to the form that is counted. It reports whether the key
// stayed whole.
func (r *request) shortenKey(c *candidate) (whole bool) {
	size := len(r.key)
	r.key = r.guard.fitKey(r.key, len(c.prefix))
	return len(r.key) == size
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

// allowsBare reports whether a request with none of the rule's parameters makes a key of the
// route alone.
func (r *rule) allowsBare() bool { return r.By.Kind == rules.ByAll && !r.ParamsOnly }

// startKey begins a key with everything before the parameters: the rule's id, a space, the
// route, "?".
func (r *request) startKey(c *candidate) {
	if c.head == nil {
		r.writeHead(c)
		return
	}
	r.key = append(r.key[:0], c.head...)
}

// writeHead implements startKey for a route that depends on the request.
func (r *request) writeHead(c *candidate) {
	r.key = append(append(append(r.key[:0], c.prefix...), r.in.Method...), ' ')
	if c.text != "" {
		r.key = append(r.key, c.text...)
	} else if r.route.set.redaction.Concerns(rules.Path) {
		r.key = r.appendRedactedPath(r.key)
	} else {
		start := len(r.key)
		r.key = base.AppendPath(r.key, r.in.Path)
		r.key = r.key[:start+len(keytext.MaskPath(&r.route.set.Secrets, r.key[start:]))]
	}
	r.key = append(r.key, '?')
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

// countTotal counts the request itself, for a rule that makes several keys from it: the sum of
// their counts exceeds the number of requests. A route whose text is too long has no total,
// since a cut text would be a key.
func (r *request) countTotal(c *candidate) {
	t := c.total
	if t.key == nil {
		r.startKey(c)
		r.key = append(r.key, base.TotalParams...)
		t = total{r.key, rules.Hash(r.key)}
	}
	text := t.key[len(c.prefix):]
	if len(text) > rules.MaxText || len(r.guard.counts.Fit(text)) != len(text) {
		return
	}
	r.addCount(&claim{rule: c, spec: c.spec}, t.hash, t.key, 1)
}
