package rules

import (
	"bytes"
	"time"

	"github.com/hotparam/hotparam/internal/answer"
)

// Reason is the reason for a decision.
type Reason uint8

// Reasons of a decision.
const (
	ReasonNone        Reason = iota // no rule applied
	ReasonWithin                    // within the limit
	ReasonLimited                   // over the limit
	ReasonNoMatch                   // no rule matched, and the rules deny that
	ReasonIgnored                   // a rule exempts the request from all others
	ReasonShadow                    // over the limit, but allowed
	ReasonOpen                      // hotparam could not decide and failed open
	ReasonBlocked                   // an exception of a rule, or an operator, blocks the value
	ReasonLocked                    // the key is locked after an earlier denial
	ReasonBusy                      // the concurrency limit is reached, and the queue is full or too slow
	ReasonServed                    // over the limit, and answered instead of by the handler
	ReasonUnavailable               // the shared limiter is unavailable, and the limit fails closed
	ReasonUnread                    // the body cannot be read, and a rule refuses such requests
	ReasonShared                    // a key is hot, and its rule shares answers (on_hot): no limit was asked
)

var reasonNames = [...]string{"none", "within", "limited", "no_match", "ignored", "shadow", "open", "blocked", "locked", "busy", "served", "away", "unread", "shared"}

// String returns the reason in one word, as metrics and logs name it.
func (r Reason) String() string { return nameOf(reasonNames[:], r) }

// Status returns the HTTP status of the default answer to a request that is refused for this
// reason. See [Decision.Answer].
func (r Reason) Status() int {
	switch r {
	case ReasonNoMatch, ReasonBlocked:
		return 403
	case ReasonUnread:
		return 400
	case ReasonBusy, ReasonUnavailable:
		return 503
	}
	return 429
}

// Decision is the result of checking one request against its rules.
type Decision struct {
	Allowed    bool
	Reason     Reason
	Limit      int64         // size of the bucket in tokens; 0 if no limit applied
	Remaining  int64         // tokens left, never below 0
	RetryAfter time.Duration // time until a retry can pass; 0 when allowed, or when none ever can
	ResetAfter time.Duration // time until all tokens are back, if no more are taken
	Delay      time.Duration // time that an allowed request must wait; zero means none
	Rule       string        // id of the rule that decided; empty if none did

	// Backoff is how long a refused client should wait before it retries, in whole seconds. It is
	// never below RetryAfter. A guard chooses one for each refused client, so that retries come
	// no faster than the limit allows. Zero means RetryAfter.
	Backoff time.Duration
	// From makes the decision's Answer. Nil means the default answer.
	From Answerer `json:"-"`
}

// Answer is the response that a program sends for a decision, whatever its framework.
type Answer struct {
	// Status is the status of the response. Zero means that the request is allowed: its handler
	// answers, and Header is added to its response.
	Status int
	// Header holds the response's headers, by their names as net/http writes them. It can be
	// assigned to an http.Header, and may be nil.
	Header map[string][]string
	// Body is the body of the response. A response to HEAD has none.
	Body []byte
}

// Answerer returns the answers of decisions. It is safe for concurrent use.
type Answerer interface {
	Answer(d Decision) Answer
}

// Answer returns the response to send for the decision. If From is set, it makes the response. By
// default a refused request gets a problem body (RFC 9457) of the type that
// draft-ietf-httpapi-ratelimit-headers registers:
//
//   - 429 (RFC 6585): the client exceeded its limit;
//   - 503 (RFC 9110, 15.6.4): the limit of concurrent requests is reached, or the backend
//     that decides is unavailable;
//   - 403: no rule matches, or a rule blocks a value;
//   - 400: the body cannot be read, and a rule refuses such requests.
//
// Retry-After is Backoff, in whole seconds (RFC 9110, 10.2.3), but at least RetryAfter. It is
// absent if a retry cannot pass. The body contains the rule's id but no parameters.
func (d Decision) Answer() Answer {
	switch {
	case d.From != nil:
		return d.From.Answer(d)
	case d.Allowed:
		return Answer{}
	}
	return d.problem()
}

// problem returns the default answer to a refused request.
func (d *Decision) problem() Answer {
	p := answer.NewProblem(d.Reason.Status(), d.Rule, max(d.RetryAfter, d.Backoff))
	b := answer.NewBuffer()
	p.WriteTo(b)
	a := Answer{Status: p.Status, Header: make(map[string][]string), Body: bytes.Clone(b.Body)}
	b.SetHeaders(a.Header)
	b.Free()
	return a
}
