package check

import (
	"net/http"
	"strings"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// checkResult is the response to one check.
type checkResult struct {
	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason"`
	Rule    string `json:"rule"`
	// Status, Headers and Body are the response to a refused request. For a request that
	// passes, Status is 200, and the application adds Headers to its own response.
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`

	Limit        int64  `json:"limit"`
	Remaining    int64  `json:"remaining"`
	RetryAfterMS int64  `json:"retry_after_ms"`
	ResetAfterMS int64  `json:"reset_after_ms"`
	DelayMS      int64  `json:"delay_ms"`
	Ticket       string `json:"ticket,omitempty"`
}

func newResult(d *rules.Decision, method string) checkResult {
	a := d.Answer()
	r := checkResult{
		Allowed: d.Allowed, Reason: d.Reason.String(), Rule: d.Rule,
		Status: a.Status, Headers: make(map[string]string, len(a.Header)), Body: string(a.Body),
		Limit: d.Limit, Remaining: d.Remaining,
		RetryAfterMS: milliseconds(max(d.RetryAfter, d.Backoff)), ResetAfterMS: milliseconds(d.ResetAfter), DelayMS: milliseconds(d.Delay),
	}
	if r.Status == 0 {
		r.Status = http.StatusOK
	}
	if method == http.MethodHead {
		r.Body = ""
	}
	for name, list := range a.Header {
		r.Headers[name] = strings.Join(list, ", ")
	}
	return r
}

// milliseconds returns d in milliseconds, rounded up.
func milliseconds(d time.Duration) int64 {
	n := d.Milliseconds()
	if d%time.Millisecond > 0 {
		n++
	}
	return n
}
