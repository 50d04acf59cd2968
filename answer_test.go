package hotparam_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/hotparam/hotparam"
)

// The default answer, byte for byte.
func TestAnswer(t *testing.T) {
	const limited = `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":429,"detail":"too many requests for these parameters`
	for name, c := range map[string]struct {
		d      hotparam.Decision
		status int
		retry  string
		body   string
	}{
		"allowed":  {hotparam.Decision{Allowed: true, Reason: hotparam.ReasonWithin, Limit: 9}, 0, "", ""},
		"limited":  {hotparam.Decision{Reason: hotparam.ReasonLimited, Rule: "r", RetryAfter: 1500 * time.Millisecond}, 429, "2", limited + `; retry in 2 s","violated-policies":["r"]}` + "\n"},
		"later":    {hotparam.Decision{Reason: hotparam.ReasonLimited, Rule: "r", RetryAfter: 1, Backoff: 7 * time.Second}, 429, "7", limited + `; retry in 7 s","violated-policies":["r"]}` + "\n"},
		"too soon": {hotparam.Decision{Reason: hotparam.ReasonLimited, Rule: "r", RetryAfter: 8 * time.Second, Backoff: 7 * time.Second}, 429, "8", limited + `; retry in 8 s","violated-policies":["r"]}` + "\n"},
		"never":    {hotparam.Decision{Reason: hotparam.ReasonLimited, Rule: "r"}, 429, "", limited + `","violated-policies":["r"]}` + "\n"},
		"busy": {hotparam.Decision{Reason: hotparam.ReasonBusy, Rule: "r"}, 503, "1",
			`{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Service Unavailable","status":503,"detail":"no room for such requests now; retry in 1 s","violated-policies":["r"]}` + "\n"},
		"away": {hotparam.Decision{Reason: hotparam.ReasonAway, Rule: "r", RetryAfter: 3 * time.Second}, 503, "3",
			`{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Service Unavailable","status":503,"detail":"no room for such requests now; retry in 3 s","violated-policies":["r"]}` + "\n"},
		"unread": {hotparam.Decision{Reason: hotparam.ReasonUnread, Rule: "r", RetryAfter: time.Second}, 400, "",
			`{"type":"about:blank","title":"Bad Request","status":400,"detail":"the body is too large, compressed, or not what its Content-Type says"}` + "\n"},
		"no match": {hotparam.Decision{Reason: hotparam.ReasonNoMatch}, 403, "", `{"type":"about:blank","title":"Forbidden","status":403}` + "\n"},
		"served":   {hotparam.Decision{Reason: hotparam.ReasonServed, Rule: "r"}, 429, "", limited + `","violated-policies":["r"]}` + "\n"},
		"blocked":  {hotparam.Decision{Reason: hotparam.ReasonBlocked, Rule: "r", RetryAfter: time.Second}, 403, "", `{"type":"about:blank","title":"Forbidden","status":403}` + "\n"},
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

// An adapter of any framework needs the decision alone.
func ExampleDecision_Answer() {
	d := hotparam.Decision{Reason: hotparam.ReasonLimited, Rule: "search", RetryAfter: time.Second} // from Guard.Begin
	a := d.Answer()
	fmt.Println(a.Status, a.Header["Retry-After"])
	// Output: 429 [1]
}
