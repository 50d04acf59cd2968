package middleware

import (
	"math/rand/v2"
	"unsafe"

	"github.com/hotparam/hotparam/hotset"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/limiter"
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
		r.unshared = cl.rule.shared
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
	if weight := hot.Payload.origins.Weight(rand.Uint64()); weight > 0 {
		hot.Payload.origins.Add(cl.rule.name, r.callerName(), weight)
	}
}

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

// limitHeld asks for a permit of the back end whose time a hot key takes, if its rule's limit has
// concurrency: auto. A key that an operator pins has no hold, and needs no permit.
func (r *request) limitHeld(cl *claim, h *published.Hold) {
	switch {
	case h.Holds():
		r.claimHold(cl, h)
	case cl.spec.quota.Load() == nil:
		cl.state.recordExempt()
	}
}

// findShared looks whether the request is answered together with others, since this key is hot.
func (r *request) findShared(cl *claim, hot *hotset.Entry[*hotState]) {
	r.sampleOrigin(cl, hot)
	r.postpone(true)
	if r.shared == nil && cl.rule.shares(&hot.Hot) {
		r.shared = hot.Payload.sharedFor(cl.rule.shared, hot.Hot.Key)
	}
}

// callerName returns the request's caller as it may leave the process. Unless the application
// supplies it, the caller is an address, so it is redacted if addresses are. The result is valid
// until the next call.
func (r *request) callerName() string {
	set, caller := r.route.set, r.guard.opts.callerOf(&r.in)
	if caller == "" || r.guard.opts.ownCaller || !set.redaction.Concerns(rules.Addr) {
		return caller
	}
	r.params.text = r.redactorOf(set).Append(r.params.text[:0], rules.Param{Source: rules.Addr, Name: "caller", Value: caller})
	return unsafe.String(unsafe.SliceData(r.params.text), len(r.params.text))
}
