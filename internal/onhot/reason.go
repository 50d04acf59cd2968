package onhot

// Reason says why a request is not answered from a shared answer.
type Reason uint8

// The reasons, by the place where they are found.
const (
	ReasonNone Reason = iota

	// The request (request.go).
	ReasonMethod         // neither GET nor HEAD
	ReasonBody           // it has a body
	ReasonAuthorization  // it has Authorization or Proxy-Authorization, or a user in its URL
	ReasonCertificate    // its client has a certificate
	ReasonCookie         // it has cookies, and the policy names none
	ReasonRange          // it requests a part
	ReasonUpgrade        // it requests another protocol
	ReasonCondition      // If-Match or If-Unmodified-Since: only the handler can judge them
	ReasonRequestNoCache // its Cache-Control, or Pragma, demands another answer
	ReasonRequestNoStore // its Cache-Control has no-store or is malformed
	ReasonLong           // its key is longer than maxKey
	ReasonRoute          // the caller has refused it, for its path; see [Cache.Refuse]

	// The answer (answer.go, recorder.go).
	ReasonStatus       // its status is not in the policy's list
	ReasonSetCookie    // it sets a cookie
	ReasonPrivate      // it is for one user
	ReasonNoStore      // its Cache-Control has no-store or is malformed
	ReasonNoCache      // its Cache-Control has no-cache
	ReasonVary         // it varies by more than the key has
	ReasonContentRange // it is a part
	ReasonTrailer      // it has trailers
	ReasonStream       // it is a stream of events
	ReasonExpired      // its own lifetime has ended
	ReasonOver         // it is larger than the policy's Max
	ReasonWithheld     // the adapter of a framework has withheld it

	// The handler and the cache (leader.go, flight.go).
	ReasonFailed     // the handler answered with 5xx
	ReasonPanic      // the handler panicked
	ReasonTruncated  // the body is shorter or longer than its Content-Length
	ReasonDeadline   // the handler did not return before the deadline
	ReasonFull       // there is no memory to record another answer
	ReasonBusy       // too many leaders run
	ReasonUnderWay   // another request fills the cache, and the policy joins none
	ReasonWait       // the leader took longer than the policy's Wait
	ReasonUnadmitted // the limit refused the leader, twice
	ReasonClosed     // the cache is closed

	reasons
)

var reasonNames = [reasons]string{
	"", "method", "body", "authorization", "certificate", "cookie", "range", "upgrade", "condition", "request-no-cache",
	"request-no-store", "long", "route", "status", "set-cookie", "private", "no-store", "no-cache", "vary", "content-range", "trailer",
	"stream", "expired", "over", "withheld", "failed", "panic", "truncated", "deadline", "full", "busy", "under-way", "wait", "unadmitted",
	"closed",
}

// String returns the reason's name, as in metrics and in the detail of Cache-Status. The name of
// ReasonNone is empty.
func (r Reason) String() string { return reasonNames[r] }

// Reasons returns all reasons, for the labels of counters.
func Reasons() (all []Reason) {
	for r := ReasonNone + 1; r < reasons; r++ {
		all = append(all, r)
	}
	return all
}

// failure reports whether the handler failed, so that a stale answer is better than none.
func (r Reason) failure() bool { return ReasonFailed <= r && r <= ReasonDeadline }

// unshareable reports whether the answer's headers or body are not for sharing.
func (r Reason) unshareable() bool { return ReasonStatus <= r && r <= ReasonWithheld }

// forward returns the reason's parameter fwd of Cache-Status (RFC 9211, section 2.2).
func (r Reason) forward() string {
	switch {
	case r == ReasonMethod:
		return "method"
	case r < ReasonStatus:
		return "request"
	}
	return "miss"
}

// statusAlone has the values of Cache-Status for requests that go alone. Each is shared by many
// headers, and appending to one copies it.
var statusAlone = func() (all [reasons][]string) {
	for r := range reasons {
		all[r] = []string{"hotparam; fwd=" + r.forward() + "; detail=" + r.String()}
	}
	return all
}()
