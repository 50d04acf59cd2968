package rules

import "time"

// Reason is why a decision came out as it did.
type Reason uint8

// Reasons of a decision.
const (
	ReasonNone    Reason = iota // no rule applied
	ReasonWithin                // within the limit
	ReasonLimited               // over the limit
	ReasonNoMatch               // no rule matched, and the rules deny that
	ReasonIgnored               // a rule exempts the request from all others
	ReasonShadow                // over the limit, and let pass all the same
	ReasonOpen                  // hotparam could not decide and failed open
	ReasonBlocked               // an exception of a rule, or an operator, blocks the value
	ReasonLocked                // the key is locked after an earlier denial
	ReasonBusy                  // as many as may be are being served, and the line is full or too slow
	ReasonServed                // over the limit, and answered in place of the handler
	ReasonAway                  // the shared limiter is away, and the limit fails closed
	ReasonUnread                // the body cannot be read, and a rule refuses such requests
)

var reasonNames = [...]string{"none", "within", "limited", "no_match", "ignored", "shadow", "open", "blocked", "locked", "busy", "served", "away", "unread"}

// String returns the reason in one word, as metrics and logs name it.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "invalid"
}

// Status returns the HTTP status of the default answer to a request that is refused for this
// reason. See [Decision.Answer].
func (r Reason) Status() int {
	switch r {
	case ReasonNoMatch, ReasonBlocked:
		return 403
	case ReasonUnread:
		return 400
	case ReasonBusy, ReasonAway:
		return 503
	}
	return 429
}

// Decision is the result of checking one request against its rules.
type Decision struct {
	Allowed    bool
	Reason     Reason
	Limit      int64         // the bucket's size in tokens; 0 where no limit applied
	Remaining  int64         // tokens left, never below 0
	RetryAfter time.Duration // how long until a retry can pass; 0 when allowed, or when none ever can
	ResetAfter time.Duration // how long until all tokens are back, if no more are taken
	Delay      time.Duration // how long an allowed request must wait; zero means not at all
	Rule       string        // id of the rule that decided; empty where none did

	// Backoff is how long a refused client should wait before it retries, in whole seconds. It
	// is never below RetryAfter. A guard tells each refused client its own, so that retries
	// come no faster than the limit allows. Zero means RetryAfter.
	Backoff time.Duration
	// From makes the decision's Answer. Nil means the default answer.
	From Answerer `json:"-"`
}
