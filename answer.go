package hotparam

import (
	"encoding/json"
	"strconv"
	"time"
)

// Answer is what a program sends for a decision, whatever its framework.
type Answer struct {
	// Status is that of the response. Zero means that the request is allowed: its handler
	// answers, and Header is added to its response.
	Status int
	// Header holds the response's headers, by their names as net/http writes them. It can be
	// assigned to an http.Header, and may be nil.
	Header map[string][]string
	// Body is that of the response. A response to HEAD has none.
	Body []byte
}

// Answerer makes the answer of decisions. It is safe for concurrent use.
type Answerer interface {
	Answer(d Decision) Answer
}

// Answer returns what to send for the decision. A refused request gets a problem body (RFC
// 9457) of the type that draft-ietf-httpapi-ratelimit-headers registers, unless From has
// another answer:
//
//   - 429 (RFC 6585): the client exceeded its limit;
//   - 503 (RFC 9110, 15.6.4): the limit of concurrent requests is reached, or the backend
//     that decides is unavailable;
//   - 403: no rule matches, or a rule blocks a value;
//   - 400: the body cannot be read, and a rule refuses such requests.
//
// Retry-After is Backoff, in whole seconds (RFC 9110, 10.2.3), and RetryAfter at least. It is
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

// problem is an RFC 9457 body.
type problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail,omitempty"`
	Violated []string `json:"violated-policies,omitempty"`
}

const (
	quotaExceeded   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	reducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
)

func (d *Decision) problem() Answer {
	p := problem{
		Type: quotaExceeded, Title: "Too Many Requests", Status: 429,
		Detail: "too many requests for these parameters", Violated: []string{d.Rule},
	}
	seconds := max(wholeSeconds(d.RetryAfter), wholeSeconds(d.Backoff))
	switch d.Reason {
	case ReasonNoMatch, ReasonBlocked:
		p = problem{Type: "about:blank", Title: "Forbidden", Status: 403}
		seconds = 0
	case ReasonUnread:
		p = problem{Type: "about:blank", Title: "Bad Request", Status: 400, Detail: "the body is too large, compressed, or not what its Content-Type says"}
		seconds = 0
	case ReasonBusy, ReasonAway:
		p.Type, p.Title, p.Status = reducedCapacity, "Service Unavailable", 503
		p.Detail = "no room for such requests now"
		seconds = max(1, seconds)
	}
	header := map[string][]string{"Content-Type": {"application/problem+json"}, "Cache-Control": {"no-store"}}
	if seconds > 0 {
		retry := strconv.FormatInt(seconds, 10)
		header["Retry-After"] = []string{retry}
		p.Detail += "; retry in " + retry + " s"
	}
	body, _ := json.Marshal(p) // strings and numbers always marshal
	return Answer{Status: p.Status, Header: header, Body: append(body, '\n')}
}

// wholeSeconds returns d in seconds, rounded up.
func wholeSeconds(d time.Duration) int64 {
	n := int64(d / time.Second)
	if d%time.Second > 0 {
		n++
	}
	return n
}
