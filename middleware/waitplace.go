package middleware

import (
	"context"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

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

// sleeps reports whether the request itself waits for its turn.
func (r *request) sleeps() bool {
	return !r.guard.opts.shadow && !r.guard.opts.noWait && !r.in.NoWait
}

// stand puts the request into the line of a key with its reservation, which the line owns from
// then on. If the turn comes too late, got becomes a denial.
func (r *request) stand(wait *limiter.WaitClaim, cl *claim, got *limiter.Result) {
	w, d := r.guard.lines.Stand(wait, got)
	got.Decision = d
	if w != nil {
		r.addTurn(cl, w)
	}
}

func (r *request) addTurn(cl *claim, w turnWaiter) {
	r.pending.turns = append(r.pending.turns, turn{*cl, w})
}

// waitClaim returns the request's claim on a place in a waiting line.
func (r *request) waitClaim(cl *claim, key limiter.WaitKey, from limiter.Asker) *limiter.WaitClaim {
	c := &limiter.WaitClaim{Key: key, Asker: from, Quota: cl.spec.quota.Load(), N: 1}
	if cl.spec.waits() {
		c.Until = time.Now().Add(r.maxWait(cl.spec.limit.Wait))
	}
	return c
}

// leaveLines leaves the lines in which the request waits or has waited.
func (r *request) leaveLines() {
	for i := range r.pending.turns {
		t := &r.pending.turns[i]
		t.state.revoke()
		_ = t.waiter.Leave(context.Background()) // if the backend is unavailable, the reservation stays taken
	}
}

// bucketAsker asks a bucket on behalf of waiting requests.
type bucketAsker struct {
	bucket *limiter.Bucket
	clock  func() time.Duration
}

func (a bucketAsker) Do(_ context.Context, ask limiter.Request) (limiter.Result, error) {
	return a.bucket.Do(a.clock(), ask), nil
}

// keyedAsker asks a table of keys on behalf of waiting requests.
type keyedAsker struct {
	keyed *limiter.Keys
	clock func() time.Duration
	hash  uint64
	key   string
}

func (a keyedAsker) Do(_ context.Context, ask limiter.Request) (limiter.Result, error) {
	return a.keyed.Do(a.clock(), a.hash, []byte(a.key), ask), nil
}

// backendAsker asks the backend on behalf of waiting requests, as for an [backendClaim].
type backendAsker struct {
	guard *Guard
	spec  *limitSpec
	op    limiter.Op
}

func (a backendAsker) Do(ctx context.Context, ask limiter.Request) (limiter.Result, error) {
	op := a.op
	op.Request = ask
	got, err := a.guard.backends[a.spec.whenAway()].Do(ctx, op)
	if err != nil && ask.Kind != limiter.Return {
		a.guard.stats.Undecided.Add(1)
		return a.guard.decideAlone(ctx, a.spec, op), nil
	}
	return got, err
}
