package limiter

import (
	"context"
	"errors"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Backend stores what was taken of keys, and decides. [New] makes a [Limiter] of any Backend:
// a [Memory], those of package redislimiter, and your own, which package limitertest can test
// for the same promises.
type Backend interface {
	// Do executes op and returns its Result. It may be called concurrently. An error means
	// that op was not decided, or that its decision is unknown. An [OpError] concerns op
	// alone; any other error means that the place where the key is kept is away. Calls
	// that take time honour the deadline of ctx.
	Do(ctx context.Context, op Op) (Result, error)
}

// Batcher is a backend that executes many ops in one call, where each Do would cost a round
// trip.
type Batcher interface {
	Backend
	// DoAll executes all of ops and sets results[i] to the Result of ops[i]; both have the
	// same length. Each op is on its own, unless it is Together with others. Ops of the same
	// key are executed in order, those that are Together last. An [OpErrors] has the errors
	// of the ops that could not be decided, and the other results are valid; after any other
	// error no result is.
	DoAll(ctx context.Context, ops []Op, results []Result) error
}

// Op is one operation on one key.
type Op struct {
	// Quota is the quota of the key. It must not be changed while in use. Another quota
	// of a known key holds from then on, and what was taken, reserved or owed carries over:
	// in any window a key is admitted at most what the largest of its quotas allows, and of
	// quotas of different families, or fixed windows of different lengths, their sum.
	Quota *rules.Quota
	// Name keeps the keys of one limit apart from those of others; Key is any bytes.
	// Neither is empty.
	Name, Key string
	Ask
}

// Ask is what an Op does with its key.
type Ask struct {
	Kind Kind
	// Together has a Take, Peek, AtMost or Reserve of a DoAll take only if all asks of that
	// call with Together are allowed. Otherwise the denied ones have the effects of a denial,
	// and the others take nothing: they are Allowed, as by a Peek, and if a denial was known
	// before they were asked, nothing but Allowed is set.
	//
	// A backend that keeps the keys in several places, or does not know Together, may take
	// some all the same. The caller returns what a Result says was Taken.
	Together bool
	N        int64
	// Keep is how many permits must be left afterwards; otherwise nothing is taken. It
	// applies to Take, Peek, AtMost and Reserve of at least 1. In a Return it is how many permits of the
	// Result later Returns may still give back; zero makes this the last one.
	Keep int64
	// Within is the longest delay that a Reserve accepts.
	Within time.Duration
	// Mark and Receipt are those of the Result that a Return gives back.
	Mark    int64
	Receipt Receipt
}

// Kind is the kind of an Ask.
type Kind uint8

// Kinds of Asks. Methods of [Limiter] that take a number have the same names, except
// AllowN, AllowAtMost and Reset for Take, AtMost and Forget. Every kind denies an N below 0,
// and allows one of 0.
const (
	// Take takes N permits if they are available, and none otherwise.
	Take Kind = iota
	// Peek makes the decision that Take would make, and takes nothing.
	Peek
	// AtMost takes as many permits as are available, up to N. It is allowed if that is at
	// least one.
	AtMost
	// Reserve takes N permits now or, if they are due within Within, in advance: it is then
	// allowed with a Delay. Reservations are served in the order in which they are made.
	Reserve
	// Charge takes N permits whether they are available or not; the missing ones are owed. It
	// is always allowed. A Charge with a Mark is for permits that were granted Within ago, and
	// may be sent again, under the same Mark and with the same N or a larger one: a backend that
	// supports this charges what is beyond the earlier N, and nothing for an earlier Mark.
	Charge
	// Return gives back N of the permits that one Result took, to the state they were taken
	// from, whatever quota is in force by now; the Op's quota is the one under which they
	// were taken. Permits that were earned, or have left their window, are not given back
	// again. Return creates no state and changes no quota.
	//
	// Takes that are returned in reverse order, or at the instant they were made, come back
	// in full. In another order a bucket may give back less, by at most what it has earned
	// since the take; after another quota of another rate, or with a warm-up, by any part.
	Return
	// Forget puts the key back into its initial state.
	Forget
)

// Result is the outcome of an Ask. A denial took nothing.
type Result struct {
	// Remaining is what is left after the Ask, or there before a Peek. Rule is empty.
	rules.Decision
	Taken   int64
	Mark    int64 // identifies what was taken, for a Return; 0 or above
	Receipt Receipt
}

// Receipt is where and when permits were taken, for their Return. With the zero value a Return
// may give back less. A Receipt is meaningful only in the process that made it.
type Receipt struct {
	// At is when they were taken, by the clock of the backend, or 0 if that is unknown.
	At time.Duration
	// path is which backend they were taken from.
	path path
	// state is which of a key's states they were taken from; 0 means that of the quota in
	// force. Bucket and Keys set it.
	state family
}

// Return returns the Ask that gives back what r took.
func (r *Result) Return() Ask {
	return Ask{Kind: Return, N: max(r.Taken, 0), Mark: r.Mark, Receipt: r.Receipt}
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
	// ErrUnsupported is returned if a backend cannot do what was asked.
	ErrUnsupported = errors.New("limiter: the backend cannot do that")
)

// Algorithm is the arithmetic of a limiter, in memory. [NewAlgorithm] returns the built-in
// ones. Give one of your own to [NewMemory] under the name by which quotas refer to it.
type Algorithm interface {
	// New returns the state of a key that is first seen at now.
	New(q *rules.Quota, now time.Duration) State
}

// State is the state of one key. It is used by one goroutine at a time; now is the time since
// the Unix epoch. If the clock goes back by up to a minute, time stands still until it has
// caught up, so nothing is earned twice; by more, it is another clock, and nothing is granted
// for the jump.
//
// A State may have a method
//
//	Adapt(q *rules.Quota, now time.Duration) bool
//
// that switches to another quota of its algorithm at now, keeps what was taken, and reports
// whether it could; if not it changes nothing. Without it each quota of a key has its own
// state.
type State interface {
	// Do executes ask at now. It is never called with Forget.
	Do(now time.Duration, ask Ask) Result
	// FreshAfter returns how long until the state equals a new one, and may be dropped, if
	// nothing is taken. Zero means that it does.
	FreshAfter(now time.Duration) time.Duration
}

// adapter is a State that can go on with another quota of its algorithm.
type adapter interface {
	Adapt(q *rules.Quota, now time.Duration) bool
}
