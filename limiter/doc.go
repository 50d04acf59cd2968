// Package limiter holds what keeps requests within a rate, in memory:
// [TokenBucket] for one thing, [Keyed] for many things by their key. Time is an
// argument everywhere; nothing here reads a clock, starts a goroutine or waits.
//
// # The bucket
//
// A bucket of burst tokens starts full and earns rate.N tokens in each rate.Per.
// In any window of length w, what it admits is at most burst + rate × w, to the
// nanosecond; nothing is rounded to seconds and no remainder is lost.
//
// Both types run the generic cell rate algorithm, which keeps a whole bucket in
// one word, so that one compare-and-swap is all the locking there is: see
// gcra.go. Package limitertest holds the suite that every limiter passes.
//
// # Decisions
//
// Take fills in every field of a [hotparam.Decision] but Rule, which is the
// caller's. A denial consumes nothing. Its RetryAfter is exact: if nobody else
// takes a token, a retry after RetryAfter passes and one a nanosecond earlier
// does not. A denial whose RetryAfter is 0 can never pass: n was negative or
// above Limit. An n of 0 always passes and takes nothing: it peeks.
//
// # Costs that are known afterwards
//
// A request whose cost shows only when it is done is let in by Peek, while there
// is a token, and then charged with Charge, which may leave the bucket in debt.
//
// # Several limiters for one request
//
// When another limiter denies the request, what this one took is returned with
// GiveBack, at once and once. A token that is given back after it had been
// earned again counts as an extra one: net of what was given back, a window
// admits at most burst + rate × w + the tokens that were taken before the window
// and given back within it.
package limiter
