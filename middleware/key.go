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

// beginKeys prepares for n keys of one rule.
func (r *request) beginKeys(c *candidate, n int) {
	r.groups.follow = c.addsUp && n > 1 && r.beginGroups()
}

// beginGroups prepares for the keys of one rule, and reports whether the request may have
// several keys of a group.
func (r *request) beginGroups() bool {
	if !r.params.list.RepeatsNames() {
		return false
	}
	r.groups.texts, r.groups.all = r.groups.texts[:0], r.groups.all[:0]
	return true
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

// countAgain counts the groups' keys beyond their first.
func (r *request) countAgain(c *candidate) {
	g, groups := r.guard, &r.groups
	from := 0
	for i := range groups.all {
		group := &groups.all[i]
		text := groups.texts[from:group.end]
		from = group.end
		if group.again == 0 {
			continue
		}
		name := base.AppendAgain(append(groups.again[:0], c.prefix...), text)
		groups.again = name
		size := len(name)
		if name = g.fitKey(name, len(c.prefix)); len(name) != size {
			continue // a cut name could be a key's; so the total is too high
		}
		r.addCount(&claim{rule: c, spec: c.spec}, rules.Hash(name), name, group.again)
	}
}

// useMatcherKey implements useKey with the key that a matcher returned.
func (r *request) useMatcherKey(c *candidate, key string) {
	p := &r.params.custom
	p.Reset()
	p.Add(rules.Param{Name: "key", Value: key})
	r.sortParams(p)
	r.startKey(c)
	r.key = p.AppendOne(r.key, 0)
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
