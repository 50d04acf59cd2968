package rules_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// The default answer, byte for byte.
func TestAnswer(t *testing.T) {
	const limited = `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":429,"detail":"too many requests for these parameters`
	for name, c := range map[string]struct {
		d      rules.Decision
		status int
		retry  string
		body   string
	}{
		"allowed":  {rules.Decision{Allowed: true, Reason: rules.ReasonWithin, Limit: 9}, 0, "", ""},
		"limited":  {rules.Decision{Reason: rules.ReasonLimited, Rule: "r", RetryAfter: 1500 * time.Millisecond}, 429, "2", limited + `; retry in 2 s","violated-policies":["r"]}` + "\n"},
		"later":    {rules.Decision{Reason: rules.ReasonLimited, Rule: "r", RetryAfter: 1, Backoff: 7 * time.Second}, 429, "7", limited + `; retry in 7 s","violated-policies":["r"]}` + "\n"},
		"too soon": {rules.Decision{Reason: rules.ReasonLimited, Rule: "r", RetryAfter: 8 * time.Second, Backoff: 7 * time.Second}, 429, "8", limited + `; retry in 8 s","violated-policies":["r"]}` + "\n"},
		"never":    {rules.Decision{Reason: rules.ReasonLimited, Rule: "r"}, 429, "", limited + `","violated-policies":["r"]}` + "\n"},
		"busy": {rules.Decision{Reason: rules.ReasonBusy, Rule: "r"}, 503, "1",
			`{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Service Unavailable","status":503,"detail":"no room for such requests now; retry in 1 s","violated-policies":["r"]}` + "\n"},
		"away": {rules.Decision{Reason: rules.ReasonUnavailable, Rule: "r", RetryAfter: 3 * time.Second}, 503, "3",
			`{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Service Unavailable","status":503,"detail":"no room for such requests now; retry in 3 s","violated-policies":["r"]}` + "\n"},
		"unread": {rules.Decision{Reason: rules.ReasonUnread, Rule: "r", RetryAfter: time.Second}, 400, "",
			`{"type":"about:blank","title":"Bad Request","status":400,"detail":"the body is too large, compressed, or not what its Content-Type says"}` + "\n"},
		"no match": {rules.Decision{Reason: rules.ReasonNoMatch}, 403, "", `{"type":"about:blank","title":"Forbidden","status":403}` + "\n"},
		"served":   {rules.Decision{Reason: rules.ReasonServed, Rule: "r"}, 429, "", limited + `","violated-policies":["r"]}` + "\n"},
		"blocked":  {rules.Decision{Reason: rules.ReasonBlocked, Rule: "r", RetryAfter: time.Second}, 403, "", `{"type":"about:blank","title":"Forbidden","status":403}` + "\n"},
	} {
		a := c.d.Answer()
		if retry := a.Header["Retry-After"]; a.Status != c.status || string(a.Body) != c.body || len(retry) > 1 || len(retry) == 0 && c.retry != "" || len(retry) == 1 && retry[0] != c.retry {
			t.Errorf("%s: %d %v\n%s", name, a.Status, a.Header, a.Body)
		}
		if refused := c.status != 0; refused != (len(a.Header["Content-Type"]) == 1 && a.Header["Content-Type"][0] == "application/problem+json" && a.Header["Cache-Control"][0] == "no-store") {
			t.Errorf("%s: %v", name, a.Header)
		}
	}
}

// An adapter of any framework needs only the decision.
func ExampleDecision_Answer() {
	d := rules.Decision{Reason: rules.ReasonLimited, Rule: "search", RetryAfter: time.Second} // from Guard.Begin
	a := d.Answer()
	fmt.Println(a.Status, a.Header["Retry-After"])
	// Output: 429 [1]
}
