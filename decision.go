package hotparam

import "time"

// Reason tells why a decision came out as it did.
type Reason uint8

// Reasons of a decision.
const (
	ReasonNone    Reason = iota // no rule had anything to say
	ReasonWithin                // within the limit
	ReasonLimited               // over the limit
	ReasonNoMatch               // no rule matched, and the rules deny that
	ReasonIgnored               // a rule exempts the request from all others
	ReasonShadow                // over the limit, and let pass all the same
	ReasonOpen                  // hotparam could not decide and failed open
	ReasonBlocked               // an exception of a rule blocks the value
)

var reasonNames = [...]string{"none", "within", "limited", "no_match", "ignored", "shadow", "open", "blocked"}

// String is the reason in one word, as metrics and logs name it.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "invalid"
}

// Decision is the answer for one request.
type Decision struct {
	Allowed    bool
	Reason     Reason
	Limit      int64         // the bucket's size in tokens; 0 where no limit applied
	Remaining  int64         // tokens left, never below 0
	RetryAfter time.Duration // how long until a retry can pass; 0 when allowed
	Rule       string        // id of the rule that decided; empty where none did
}
