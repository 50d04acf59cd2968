package middleware

import (
	"math/rand/v2"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/hotset"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/keytext"
	"github.com/hotparam/hotparam/rules"
)

// checkPlain implements check for the most common requests in half the time. The route has one
// rule, which makes one key from the query's parameters, and their names need no decoding.
// checkPlain builds the key on the stack, and uses a pooled request only if the key is hot. For
// any other request it does nothing and returns done=false.
func (g *Guard) checkPlain(route *route, in *Request, holds bool, d *rules.Decision) (t *Ticket, done bool) {
	c := route.plain
	if ordered := g.controls.Load(); ordered != nil {
		if controls := ordered.forRule(c.ID); controls != nil && controls.overrides {
			return t, false
		}
	}
	var buf [128]byte
	if size := len(c.head) + len(in.Query); size > len(buf) || size-len(c.prefix) > collector.AlwaysFits {
		return t, false
	}
	key, n, hidden, ok := keytext.AppendPlain(append(buf[:0], c.head...), in.Query, c.By.Names, &route.set.Secrets)
	if !ok || len(key)-len(c.prefix) > collector.AlwaysFits {
		return t, false
	}
	counts := in.Steps.counts()
	if hidden > 0 && counts {
		g.withheld.add(hidden)
	}
	d.Allowed = true
	if n == 0 {
		if !c.allowsBare() {
			return t, true
		}
		key = key[:len(key)-1]
	}
	hash := rules.Hash(key)
	entry := g.hot.Lookup(hash, key) // before Add, so that their cache misses overlap
	if counts {
		g.counts.Add(hash, key, 1)
	}
	if entry != nil && in.onlyCounts() && c.shares(&entry.Hot) {
		g.sharePlain(c, in, entry, d)
		return nil, true
	}
	if entry != nil && !g.limitPlain(c, in, hash, entry, d) {
		r := g.newRequest(in, route, holds)
		r.key = append(r.key[:0], key...)
		r.limitHotKey(&claim{rule: c, spec: c.spec, hash: hash}, entry)
		t = r.finish(d)
	}
	return t, true
}

// limitPlain implements limitHotKey and finish for most limits in half the time. The key's
// bucket alone decides, so there is nothing to merge, to return or to wait for, and no request
// is needed to hold it. For any other limit it does nothing and returns false.
func (g *Guard) limitPlain(c *candidate, in *Request, hash uint64, hot *hotset.Entry[*hotState], d *rules.Decision) bool {
	spec, key := c.spec, hot.Payload
	quota := spec.quota.Load()
	if quota == nil || !spec.isQuick() || hot.Hot.Spared || g.opts.shadow || c.set.redaction != nil || in.run != nil {
		return false
	}
	b := key.bucketUnder(quota, spec, g.opts.clock)
	now := g.opts.clock()
	d.Allowed, d.Reason, d.Limit, d.Remaining, d.RetryAfter, d.ResetAfter, d.Delay = b.TakeOne(now)
	d.Rule, d.From = c.ID, spec
	var n int64 // different for each request with this outcome
	if d.Allowed {
		n = key.passed.Add(1)
	} else {
		n = key.refused.Add(1)
		g.stats.Limited.Add(1)
		if d.RetryAfter > 0 {
			d.Backoff = g.backoffs.Next(hash, now, d.RetryAfter, b.interval)
		}
		g.haveHandled(in, spec, d)
	}
	spec.decisions.of[d.Reason].addOne(uint32(n))
	if in.Steps == LimitStep && c.shares(&hot.Hot) {
		spec.decisions.asked.addOne(uint32(n))
	}
	if weight := key.origins.Weight(base.Mix64(hash ^ uint64(n))); weight > 0 && in.Steps.counts() {
		key.origins.Add(c.name, g.opts.callerOf(in), weight)
	}
	return true
}

// sharePlain implements findShared and finish for requests that need no pooled request.
func (g *Guard) sharePlain(c *candidate, in *Request, hot *hotset.Entry[*hotState], d *rules.Decision) {
	key := hot.Payload.sharedFor(c.shared, hot.Hot.Key)
	n := rand.Uint64()
	if weight := hot.Payload.origins.Weight(n); weight > 0 {
		hot.Payload.origins.Add(c.name, g.opts.callerOf(in), weight)
	}
	key.decide(d, uint32(n))
}
