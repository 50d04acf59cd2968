package answer

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A body has the bytes that encoding/json writes.
func TestProblemIsJSON(t *testing.T) {
	type problem struct {
		Type     string   `json:"type"`
		Title    string   `json:"title"`
		Status   int      `json:"status"`
		Detail   string   `json:"detail,omitempty"`
		Violated []string `json:"violated-policies,omitempty"`
	}
	const iana = "https://iana.org/assignments/http-problem-types#"
	rapid.Check(t, func(t *rapid.T) {
		rule := rapid.OneOf(rapid.StringMatching(`[a-z_-]{0,40}`), rapid.String(), rapid.SampledFrom([]string{"<a>", "a&b", "\x7f", "\xff", `"`, `\`, "\u2028"})).Draw(t, "rule")
		wait := time.Duration(rapid.Int64().Draw(t, "wait"))
		retry := max(0, wait.Nanoseconds()/1e9)
		if wait > 0 && wait%time.Second != 0 {
			retry++
		}
		var want problem
		switch rapid.IntRange(0, 3).Draw(t, "status") {
		case 0:
			want = problem{iana + "quota-exceeded", "Too Many Requests", 429, "too many requests for these parameters", []string{rule}}
		case 1:
			want = problem{iana + "temporary-reduced-capacity", "Service Unavailable", 503, "no room for such requests now", []string{rule}}
			retry = max(1, retry)
		case 2:
			want, retry = problem{Type: "about:blank", Title: "Forbidden", Status: 403}, 0
		default:
			want = problem{Type: "about:blank", Title: "Bad Request", Status: 400, Detail: "the body is too large, compressed, or not what its Content-Type says"}
			retry = 0
		}
		header := http.Header{"Content-Type": {"application/problem+json"}, "Cache-Control": {"no-store"}}
		if retry > 0 {
			header["Retry-After"] = []string{strconv.FormatInt(retry, 10)}
			want.Detail += fmt.Sprintf("; retry in %d s", retry)
		}
		body, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		p, b, got := NewProblem(want.Status, rule, wait), NewBuffer(), make(http.Header)
		defer b.Free()
		p.WriteTo(b)
		b.SetHeaders(got)
		if string(b.Body) != string(body)+"\n" || p.Status != want.Status {
			t.Fatalf("%d %s\nwant %s", p.Status, b.Body, body)
		}
		if !maps.EqualFunc(got, header, func(a, b []string) bool { return len(a) == 1 && a[0] == b[0] }) {
			t.Fatalf("%v, want %v", got, header)
		}
	})
}

// Headers stay unchanged when a handler adds values, and when the buffer is reused.
func TestHeadersAreTheServers(t *testing.T) {
	write := func(rule string, wait time.Duration) http.Header {
		p, b, h := NewProblem(429, rule, wait), NewBuffer(), make(http.Header)
		p.WriteTo(b)
		for i := range maxHeaders - 3 {
			b.Add(fmt.Sprintf("X-%d", i), rule)
		}
		b.SetHeaders(h)
		b.Free()
		return h
	}
	first := write("first", 7*time.Second)
	want := first.Clone()
	for i := range 100 {
		write("other", time.Duration(i)*time.Hour)
	}
	for name := range want {
		first.Add(name, "second")
	}
	for name, values := range want {
		if got := first[name]; len(got) != 2 || got[0] != values[0] || got[1] != "second" {
			t.Errorf("%s: %q, want %q and another", name, got, values)
		}
	}
	if len(want) != maxHeaders {
		t.Errorf("%d headers: %v", len(want), want)
	}
}
