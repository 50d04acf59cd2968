package middleware

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hotparam/hotparam/hotset"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/fleet"
	"github.com/hotparam/hotparam/rules"
)

// anyKey is the key of a rule that has none.
const anyKey = "*"

// limitRule asks the limit of a rule without hot and without keys, which has one bucket.
func (r *request) limitRule(c *candidate) {
	cl := claim{rule: c, spec: c.spec, hash: c.spec.hash}
	if cl.spec.limit == nil {
		return
	}
	if !r.asks {
		r.postpone(true)
		return
	}
	if r.trace != nil {
		r.trace.addLimit(c)
	}
	if cl.spec.single != nil {
		r.chargeAtEnd(cl, 0, nil)
		r.askBucket(&cl, cl.spec.single)
	}
	r.claimLater(&cl, anyKey)
}

// limitKey asks the limit of a rule with keys but without hot. Each key has its own bucket.
func (r *request) limitKey(cl *claim) {
	spec := cl.spec
	if spec.limit == nil {
		return
	}
	if spec.keyed != nil {
		r.chargeAtEnd(*cl, cl.hash, r.key)
		if r.askKeyed(cl) && cl.rule.heated != nil {
			r.limitHeated(cl)
		}
	}
	if spec.needsKey() {
		r.claimLater(cl, r.keyText(cl.rule))
	}
}

// askKeyed asks the bucket of the request's key in the limit's table, and reports whether it
// allows the request.
func (r *request) askKeyed(cl *claim) bool {
	keyed := cl.spec.keyed
	r.trace.beforeKeyed(keyed, r.now(), cl, r.key)
	ask := r.askFor(cl)
	got := keyed.Do(r.now(), cl.hash, r.key, ask)
	waits := got.Delay > 0 && r.sleeps()
	if waits {
		key := string(r.key)
		from := keyedAsker{keyed, r.guard.opts.clock, cl.hash, key}
		r.stand(r.waitClaim(cl, limiter.WaitKey{Of: keyed, Key: key, Keep: ask.Keep}, from), cl, &got)
	}
	if r.addResult(cl, &got.Decision) && got.Taken > 0 && !waits {
		r.grants.addKeyed(keyed, cl.hash, r.key, &got)
	}
	return got.Allowed
}

// askKeyedToo also asks the table for a hot key whose own bucket has allowed the request.
func (r *request) askKeyedToo(cl *claim) {
	uncounted := *cl
	uncounted.state = nil // the bucket's result counts
	if !r.askKeyed(&uncounted) {
		cl.state.revoke()
	}
}

// limitHeated asks the bucket that the key had while the rule had hot.
func (r *request) limitHeated(cl *claim) {
	if h := cl.rule.heated[string(r.key)]; h != nil {
		if b := h.bucketFor(cl.spec, r.guard.opts.clock); b != nil {
			r.askBucket(cl, b)
		}
	}
}

// limitHotKey asks the limit of a hot key, unless the key is spared.
func (r *request) limitHotKey(cl *claim, hot *hotset.Entry[*hotState]) {
	cl.state = hot.Payload
	if r.counts {
		r.sampleOrigin(cl, hot)
	}
	if r.in.Steps == LimitStep && r.in.run == nil && r.unshared == nil && cl.rule.shares(&hot.Hot) {
		r.unshared = cl.rule.rule
	}
	if cl.spec.limit == nil {
		return
	}
	if hot.Hot.IsExempt() {
		cl.state.recordExempt()
		return
	}
	if b := cl.state.bucketFor(cl.spec, r.guard.opts.clock); b != nil && r.askBucket(cl, b) && cl.spec.keyed != nil {
		r.askKeyedToo(cl)
	}
	if cl.spec.quota.Load() != nil && r.askStock(cl) {
		if cl.spec.permits != nil {
			r.claimPermits(cl, r.keyText(cl.rule))
		}
	} else if cl.spec.needsKey() {
		r.claimLater(cl, r.keyText(cl.rule))
	}
	if cl.spec.limit.Concurrency == rules.AutoConcurrency {
		r.limitHeld(cl, hot.Hot.Hold)
	}
}

// sampleOrigin records the origin of a hot key's request, if the request is in the sample.
func (r *request) sampleOrigin(cl *claim, hot *hotset.Entry[*hotState]) {
	if weight := hot.Payload.origins.weight(rand.Uint64()); weight > 0 {
		hot.Payload.origins.sample(cl.rule.name, r.callerName(), weight)
	}
}

// keyText returns a copy of the text of the request's key.
func (r *request) keyText(c *candidate) string { return string(r.key[len(c.prefix):]) }

// askBucket asks the bucket of a rule or of a hot key for a permit. For rules that count costs
// it only asks whether there is one. It reports whether the request is within the limit.
func (r *request) askBucket(cl *claim, b *limiter.Bucket) bool {
	r.trace.beforeBucket(b, r.now(), cl.spec)
	ask := r.askFor(cl)
	got := b.Do(r.now(), ask)
	waits := got.Delay > 0 && r.sleeps()
	if waits {
		r.stand(r.waitClaim(cl, limiter.WaitKey{Of: b, Keep: ask.Keep}, bucketAsker{b, r.guard.opts.clock}), cl, &got)
	}
	cl.state.record(got.Allowed)
	within := r.addResult(cl, &got.Decision)
	if within && !waits {
		r.grants.addBucket(b, cl.state, &got)
	}
	return within
}

// askFor returns the question that the request asks a limit. It fills the result in one place: a copy
// right after some fields were written would wait for the processor's store buffer.
func (r *request) askFor(cl *claim) limiter.Request {
	var (
		kind   limiter.OpKind
		left   int64
		within time.Duration
	)
	if cl.spec.limit.Priority != nil {
		left = fleet.Reserve(cl.spec.quota.Load().Burst, r.classOf(cl), cl.spec.limit.Priority.Classes())
	}
	switch {
	case cl.rule.Count != rules.Requests:
		kind = limiter.Peek
	case cl.spec.waits() && !r.guard.opts.shadow:
		kind, within = limiter.Reserve, r.maxWait(cl.spec.limit.Wait)
	}
	return limiter.Request{Kind: kind, N: 1, Keep: left, Within: within}
}

// class returns the request's class by a rule's priority: the first class that one of the
// parameter's values has, or the last class if none has one.
func (r *request) class(c *candidate, p *rules.Priority) int {
	params := r.loadParams(c)
	class := p.Classes() - 1
	for i := range params.Len() {
		if q := params.At(i); q.Name == p.Name && q.Source == p.Source {
			if index := slices.Index(p.First, q.Value); index >= 0 {
				class = min(class, index)
			}
		}
	}
	return class
}

// classOf returns the request's class by the priority of a limit, or 0 if that has none.
func (r *request) classOf(cl *claim) int {
	if p := cl.spec.limit.Priority; p != nil {
		return r.class(cl.rule, p)
	}
	return 0
}

// claimLater adds to r.pending the question to the backend and the permits to acquire. They
// are due once this process's limits have allowed the request.
func (r *request) claimLater(cl *claim, key string) {
	quota := cl.spec.quota.Load()
	if quota != nil && cl.spec.byBackend {
		ask := r.askFor(cl)
		ask.Together = cl.spec.limit.Mode != rules.ModeShadow
		c := backendClaim{claim: *cl, op: limiter.Op{Quota: quota, Name: cl.spec.name, Key: key, Request: ask}}
		if cl.state != nil && r.mayBorrow(cl) {
			c.stock = cl.state.stockFor(r.guard, cl.spec, r.classOf(cl), func() string { return key })
		}
		r.pending.byBackend = append(r.pending.byBackend, c)
	}
	if cl.spec.permits != nil {
		r.claimPermits(cl, key)
	}
}

// claimPermits adds to r.pending the permits to acquire.
func (r *request) claimPermits(cl *claim, key string) {
	p := permitClaim{claim: *cl, key: key, class: r.classOf(cl)}
	if cl.spec.quota.Load() != nil {
		p.state = nil // the quota's result counts
	}
	r.pending.permits = append(r.pending.permits, p)
}
