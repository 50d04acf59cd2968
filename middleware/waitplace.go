package middleware

import (
	"context"
	"time"

	"github.com/hotparam/hotparam/limiter"
)

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
