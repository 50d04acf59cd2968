package limiter

import (
	"context"
	"errors"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Backend stores the state of keys, and decides. [New] makes a [Limiter] on any Backend: a
// [Memory], those of package redislimiter, or your own, which package limitertest can test for
// the same promises.
type Backend interface {
	// Do executes op and returns its Result. It may be called concurrently. An error means that
	// op was not decided, or that its decision is unknown. An [OpError] concerns op alone. Any
	// other error means that the place where the key is kept is unavailable. Calls that take
	// time honour the deadline of ctx.
	Do(ctx context.Context, op Op) (Result, error)
}

// Batcher is a backend that executes many ops in one call, where each Do would cost a round
// trip.
type Batcher interface {
	Backend
	// DoAll executes all of ops and sets results[i] to the Result of ops[i]; both slices have
	// the same length. Each op is independent, unless it is Together with others. Ops of the
	// same key are executed in order, and those with Together last. An [OpErrors] holds the
	// errors of the ops that could not be decided, and the other results are valid. After any
	// other error no result is valid.
	DoAll(ctx context.Context, ops []Op, results []Result) error
}

// Op is one operation on one key.
type Op struct {
	// Quota is the quota of the key. It must not be changed while in use. Another quota of a
	// known key holds from then on, and permits taken, reserved or owed carry over. In any
	// window a key is admitted at most as much as the largest of its quotas allows. For quotas
	// of different families, and for fixed windows of different lengths, the bound is their
	// sum.
	Quota *rules.Quota
	// Name keeps the keys of one limit apart from those of others; Key is any bytes.
	// Neither is empty.
	Name, Key string
	Request
}

// Request is what an Op does with its key.
type Request struct {
	Kind OpKind
	// Together makes a Take, Peek, AtMost or Reserve of a DoAll depend on the others with
	// Together: they take permits only if all of them are allowed. Otherwise the denied ones
	// have the effects of a denial, and the others take nothing. These are Allowed, as by a
	// Peek. If a denial was known before they were asked, only Allowed is set.
	//
	// A backend that keeps the keys in several places, or does not know Together, may take
	// permits for some nevertheless. The caller returns the permits that a Result reports as
	// Taken.
	Together bool
	N        int64
	// Keep is the number of permits that must be left afterwards; otherwise no permits are
	// taken. It applies to Take, Peek, AtMost and Reserve of at least 1. In a Return it is the
	// number of the Result's permits that later Returns may still return. Zero makes this
	// Return the last one.
	Keep int64
	// Within is the longest delay that a Reserve accepts.
	Within time.Duration
	// Mark and Receipt are those of the Result whose permits a Return returns.
	Mark    int64
	Receipt Receipt
}

// OpKind is the kind of a Request.
type OpKind uint8

// Kinds of requests. Methods of [Limiter] that take a number have the same names, except
// AllowN, AllowAtMost and Reset for Take, AtMost and Forget. Every kind denies an N below 0,
// and allows one of 0.
const (
	// Take takes N permits if they are available, and none otherwise.
	Take OpKind = iota
	// Peek makes the decision that Take would make, and takes nothing.
	Peek
	// AtMost takes as many permits as are available, up to N. It is allowed if at least one is.
	AtMost
	// Reserve takes N permits now or, if they are due within Within, in advance. In advance it
	// is allowed with a Delay. Reservations are served in the order in which they are made.
	Reserve
	// Charge takes N permits whether they are available or not; the missing ones are owed. It
	// is always allowed. A Charge with a Mark is for permits that were granted Within ago. It
	// may be sent again, under the same Mark and with the same N or a larger one. A backend
	// that supports this charges only the excess over the earlier N, and nothing for an earlier
	// Mark.
	Charge
	// Return returns N of the permits that one Result took to the state they were taken from,
	// whatever quota is now in force. The Op's Quota is the one they were taken under. Permits
	// that have been earned again, or have left their window, are not returned a second time.
	// Return creates no state and changes no quota.
	//
	// Takes that are returned in reverse order, or at the instant they were made, are restored
	// in full. In another order a bucket may restore less, by at most the permits that it has
	// earned since the take. After a change to another rate, or with a warm-up, it may restore
	// less by any amount.
	Return
	// Forget puts the key back into its initial state.
	Forget
)

// Result is the outcome of a Request. A denial took nothing.
type Result struct {
	// Remaining is the number of permits left after the request, or available before a Peek.
	// Rule is empty.
	rules.Decision
	Taken   int64
	Mark    int64 // identifies the take, for a Return; 0 or above
	Receipt Receipt
}

// Receipt records where and when permits were taken, for their Return. With the zero value a
// Return may restore fewer permits. A Receipt is meaningful only in the process that made it.
type Receipt struct {
	// At is the time of the take by the clock of the backend, or 0 if that is unknown.
	At time.Duration
	// path identifies the backend that they were taken from.
	path path
	// state identifies the state of the key that they were taken from; 0 means that of the
	// quota in force. Bucket and Keys set it.
	state family
}

// Return returns the [Request] that gives all permits of r back.
func (r *Result) Return() Request {
	return Request{Kind: Return, N: max(r.Taken, 0), Mark: r.Mark, Receipt: r.Receipt}
}

func (r *Result) keepState(f family) {
	if r.Taken > 0 && f != unlimitedFamily {
		r.Receipt.state = f
	}
}

// Errors of backends.
var (
	// ErrNoKey is returned if the key or the name of an Op is empty.
	ErrNoKey = errors.New("limiter: the key, or the limiter's name, is empty")
	// ErrUnsupported is returned if a backend does not support an op.
	ErrUnsupported = errors.New("limiter: the backend cannot do that")
)

// Algorithm is the arithmetic of a limiter, in memory. [NewAlgorithm] returns the built-in
// ones. Pass your own to [NewMemory] under the name by which quotas refer to it.
type Algorithm interface {
	// New returns the state of a key that is first seen at now.
	New(q *rules.Quota, now time.Duration) State
}

// State is the state of one key. It is used by one goroutine at a time. The argument now is the
// time since the Unix epoch. If the clock goes back by up to a minute, time does not advance
// until it has caught up, so no permit is earned twice. If it goes back further, it is another
// clock, and no permit is granted for the jump.
//
// A State may have a method
//
//	Adapt(q *rules.Quota, now time.Duration) bool
//
// that switches to another quota of its algorithm at now and keeps the permits taken. It
// reports whether it could; if not, it changes nothing. Without this method each quota of a key
// has its own state.
type State interface {
	// Do executes ask at now. It is never called with Forget.
	Do(now time.Duration, ask Request) Result
	// FreshAfter returns the time until the state equals a new one, and may be dropped, if no
	// permits are taken. Zero means that it already does.
	FreshAfter(now time.Duration) time.Duration
}

// quotaSwitcher is a State that can switch to another quota of its algorithm.
type quotaSwitcher interface {
	Adapt(q *rules.Quota, now time.Duration) bool
}
