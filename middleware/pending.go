package middleware

import (
	"context"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/fleet"
	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/rules"
)

// claim is one limit that applies to a request.
type claim struct {
	rule  *candidate
	spec  *limitSpec // the rule's limit, or an exception's
	hash  uint64     // hash of the key, or of the limit if there is no key
	state *hotState  // state of the hot key that counts the result, or nil
}

// backendClaim is a claim on a limit that the backend decides for all instances.
type backendClaim struct {
	claim
	op      limiter.Op
	back    limiter.Op   // returns the taken tokens; N is 0 if there are none
	stock   *fleet.Stock // borrows from the backend for this claim and others; or nil
	decided bool         // whether a stock or a waiting line has decided, which asks the backend itself
}

// permitClaim is a permit that a request needs.
type permitClaim struct {
	claim
	key   string
	class int
	hold  *published.Hold // of a limit with concurrency: auto; nil for others
}

// isOfHold reports whether the claim is for the same permit as one before it: a request needs one
// permit of a back end, however many of its keys are held.
func (c *permitClaim) isOfHold(before *permitClaim) bool {
	return c.hold != nil && before.hold != nil && c.key == before.key
}

// permits returns the number of permits that the claim's key has.
func (c *permitClaim) permits() int64 {
	if c.hold != nil {
		return c.hold.Permits
	}
	return int64(c.spec.limit.Concurrency)
}

// mayKeep reports whether an instance may keep a released permit of the claim's key. If a back end
// has fewer permits than there are instances, a permit that one keeps is missing at another.
func (c *permitClaim) mayKeep(instances int) bool {
	return c.hold == nil || c.hold.Permits >= int64(instances)
}

// turn is a request's place in the waiting line of a limit's key.
type turn struct {
	claim
	waiter turnWaiter
}

// turnWaiter is a [limiter.Waiter], or a [fleet.Waiter] for permits that instances hold in advance.
type turnWaiter interface {
	Done() <-chan struct{}
	Denied() (*rules.Decision, error)
	Leave(ctx context.Context) error
}

// pending holds the remaining steps of a request once this process's limits have allowed it.
type pending struct {
	byBackend []backendClaim // claims on limits that the backend decides
	asked     int            // number of claims in byBackend that it has decided on
	delay     time.Duration  // time to wait before the request proceeds
	turns     []turn         // places in the lines where it waits during the delay
	permits   []permitClaim
	leases    []semaphore.Lease // leases of the acquired permits
	waited    bool
}

// waits reports whether the request has to wait for its turn or to acquire permits.
func (p *pending) waits() bool { return p.delay > 0 || len(p.turns) > 0 || len(p.permits) > 0 }

// reset drops everything and keeps the memory.
func (p *pending) reset() {
	clear(p.byBackend)
	clear(p.permits)
	clear(p.turns)
	p.byBackend, p.permits, p.turns = p.byBackend[:0], p.permits[:0], p.turns[:0]
	p.delay, p.asked, p.waited = 0, 0, false
}

// grants are the permits that the limits of this process have granted a request. They are
// returned if another limit refuses it.
type grants struct {
	list []grant
	keys []byte // the grants' keys, one after the other
}

// grant is n permits granted by one limit, with the data needed to return them. If n is 0, as
// for a rule that counts costs, only the count in state is corrected.
type grant struct {
	n       int64
	mark    int64
	receipt limiter.Receipt
	state   *hotState // of the hot key, or nil

	stock    *fleet.Stock    // the stock that granted it, with its version as the mark, or nil
	bucket   *limiter.Bucket // the bucket that granted it, or nil if keyed did
	keyed    *limiter.Keys
	hash     uint64 // the key's hash
	from, to int    // the key in grants.keys
}

// addBucket records the grant of a bucket.
func (g *grants) addBucket(b *limiter.Bucket, state *hotState, got *limiter.Result) {
	g.list = append(g.list, grant{bucket: b, state: state, n: got.Taken, mark: got.Mark, receipt: got.Receipt})
}

// addKeyed records the grant of a table of keys.
func (g *grants) addKeyed(keyed *limiter.Keys, hash uint64, key []byte, got *limiter.Result) {
	from := len(g.keys)
	g.keys = append(g.keys, key...)
	g.list = append(g.list, grant{keyed: keyed, hash: hash, from: from, to: len(g.keys), n: got.Taken, mark: got.Mark, receipt: got.Receipt})
}

// reset drops all grants and keeps the memory.
func (g *grants) reset() {
	if len(g.list) > 0 {
		clear(g.list)
		g.list, g.keys = g.list[:0], g.keys[:0]
	}
}

func (g *grant) giveBack(now time.Duration, keys []byte) {
	g.state.revoke()
	back := limiter.Request{Kind: limiter.Return, N: g.n, Mark: g.mark, Receipt: g.receipt}
	switch {
	case g.n == 0:
	case g.stock != nil:
		g.stock.Return(g.n, g.mark)
	case g.bucket != nil:
		g.bucket.Do(now, back)
	default:
		g.keyed.Do(now, g.hash, keys[g.from:g.to], back)
	}
}
