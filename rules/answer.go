package rules

import (
	"bytes"

	"github.com/hotparam/hotparam/internal/answer"
)

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
