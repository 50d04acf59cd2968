package limiter

import (
	"context"
	"errors"
	"time"

	"github.com/hotparam/hotparam"
)

// Backend keeps what was taken of keys, and decides. It is all that a place for
// limiters has to be: [New] makes a [Limiter] of it. Backends are [Memory], those of
// package redislimiter, and any of your own; package limitertest tells whether it
// keeps the promises.
type Backend interface {
	// Do asks for one key. It may be called concurrently. An error means that nothing
	// is known: it was not decided, or nobody can tell how. An [OpError] concerns this
	// op alone; any other means that the place where the key is kept is away. The
	// context's deadline holds for whatever takes time.
	Do(ctx context.Context, op Op) (Result, error)
}

// Batcher is a backend that asks for many keys at once, where each Do would cost a
// round trip.
type Batcher interface {
	Backend
	// DoAll asks for all of ops, each on its own, and tells results[i] of ops[i]; it
	// is as long as ops. Ops of the same key are done in their order. An [OpErrors]
	// names the ops that could not be decided, and the other results hold; any other
	// error means that nothing is known of any.
	DoAll(ctx context.Context, ops []Op, results []Result) error
}

// Op asks for something of one key.
type Op struct {
	// Quota is the key's. It is not changed while in use. Another one for a key that is
	// known holds from then on, and what was taken, reserved or owed carries over: in any
	// window a key is admitted at most what the largest of its quotas allows, of quotas of
	// different families their sum.
	Quota *hotparam.Quota
	// Name tells the keys of one limit from those of others; Key is any bytes. Neither
	// is empty.
	Name, Key string
	Ask
}

// Ask is what an Op wants.
type Ask struct {
	Kind Kind
	N    int64
	// Keep permits must be left afterwards, or it is as if there were none; Take, Peek,
	// AtMost and Reserve have it.
	Keep int64
	// Within is the longest delay that a Reserve accepts.
	Within time.Duration
	// Mark and Receipt are those of the Result that a Return gives back.
	Mark    int64
	Receipt Receipt
}

// Kind is what an Ask does.
type Kind uint8

// Kinds. N below 0 is denied by all; what takes nothing with an N of 0 is allowed.
const (
	// Take takes N permits if there are as many, else none.
	Take Kind = iota
	// Peek is the decision that Take would come to, and takes nothing.
	Peek
	// AtMost takes as many as there are, at most N: allowed if that is one at least.
	AtMost
	// Reserve takes N permits now or, if they are due within that time, in advance:
	// allowed, with a Delay. Reservations are served in the order in which they are made.
	Reserve
	// Charge takes N permits whether there are as many or not: what is missing is
	// owed. It is always allowed.
	Charge
	// Return gives back N of what one Result took, to where it was taken, whatever the
	// quota is by then: the Op's quota is the one under which it was taken. What is no
	// longer missing, since it was earned or has left its window, is not given back again.
	// It makes no state, and changes no quota.
	Return
	// Forget makes the key as new.
	Forget
)

// Result is what an Ask came to. A denial took nothing.
type Result struct {
	// Decision's Remaining is what is left after the Ask, for a Peek before; its Rule
	// is not filled in.
	hotparam.Decision
	Taken   int64
	Mark    int64 // 0 or above; names what was taken, for a Return
	Receipt Receipt
}

// Receipt is where and when something was taken, for the Return of it. The zero value says
// nothing, and then a Return may give back less. A Receipt is meaningful only in the process
// that made it.
type Receipt struct {
	// At is when, by the clock of the backend; 0 if unknown.
	At time.Duration
	// path is which backend took it.
	path path
	// state is where, among the states that one key has of quotas of different families;
	// 0: in the one of the quota that holds. Bucket and Keys fill it in.
	state family
}

// Return is the Ask that gives back what r took.
func (r *Result) Return() Ask {
	return Ask{Kind: Return, N: max(r.Taken, 0), Mark: r.Mark, Receipt: r.Receipt}
}

// Errors of backends.
var (
	// ErrNoKey: the key or the name of an Op is empty.
	ErrNoKey = errors.New("limiter: the key, or the limiter's name, is empty")
	// ErrUnsupported: the backend cannot do what was asked.
	ErrUnsupported = errors.New("limiter: the backend cannot do that")
)

// Algorithm is a limiter's arithmetic, in memory. The built-in ones are made by
// [NewAlgorithm]; one of your own is given to [NewMemory] by the name that quotas
// have for it.
type Algorithm interface {
	// New is the state of a key that is first seen at now.
	New(q *hotparam.Quota, now time.Duration) State
}

// State is what an algorithm knows of one key. Whoever keeps it calls it from one
// goroutine at a time; now is the time since the Unix epoch. A clock may go back: by up
// to a minute time then stands still until the clock has caught up, and no span of
// time counts twice; by more it is another clock, and nothing is granted for the leap.
//
// A State may have a method
//
//	Adapt(q *hotparam.Quota, now time.Duration) bool
//
// which goes on with another quota of its algorithm at now, keeps what was taken, and
// reports whether it could; if not it changes nothing. Without it each quota of a key has a
// state of its own.
type State interface {
	// Do does what is asked at now, Forget aside.
	Do(now time.Duration, ask Ask) Result
	// FreshAfter is how long until the state is as good as new if nothing is taken,
	// and may be forgotten; 0: it is.
	FreshAfter(now time.Duration) time.Duration
}

// adapter is a State that can go on with another quota of its algorithm.
type adapter interface {
	Adapt(q *hotparam.Quota, now time.Duration) bool
}
