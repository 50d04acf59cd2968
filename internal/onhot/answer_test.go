package onhot

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// headerOf returns a header of "Name: value" lines.
func headerOf(lines ...string) http.Header {
	h := make(http.Header)
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

func TestAnswersThatAreShared(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	const c, s = 10 * time.Second, 20 * time.Second // of the policy
	for _, test := range []struct {
		name  string
		lines []string
		want  terms
		age   time.Duration
	}{
		{"nothing stated", nil, terms{c, s}, 0},
		{"public", []string{"Cache-Control: public"}, terms{c, s}, 0},
		{"max-age longer", []string{"Cache-Control: max-age=60"}, terms{c, s}, 0},
		{"max-age shortens stale", []string{"Cache-Control: max-age=15"}, terms{c, 5 * time.Second}, 0},
		{"max-age shortens cache", []string{"Cache-Control: max-age=3"}, terms{3 * time.Second, 0}, 0},
		{"s-maxage goes first", []string{"Cache-Control: max-age=60, s-maxage=5"}, terms{5 * time.Second, 0}, 0},
		{"s-maxage over max-age", []string{"Cache-Control: max-age=1, s-maxage=60"}, terms{c, 0}, 0},
		{"max-age over Expires", []string{"Cache-Control: max-age=60", "Expires: 0"}, terms{c, s}, 0},
		{"must-revalidate", []string{"Cache-Control: must-revalidate"}, terms{c, 0}, 0},
		{"Expires", []string{"Expires: " + at(4*time.Second)}, terms{4 * time.Second, 0}, 0},
		{"Expires after an old Date", []string{"Expires: " + at(4*time.Second), "Date: " + at(-2*time.Second)}, terms{4 * time.Second, 0}, 2 * time.Second},
		{"Expires and a Date ahead", []string{"Expires: " + at(12*time.Second), "Date: " + at(8*time.Second)}, terms{4 * time.Second, 0}, 0},
		{"Age", []string{"Cache-Control: max-age=60", "Age: 55"}, terms{5 * time.Second, 0}, 55 * time.Second},
		{"Age alone", []string{"Age: 55"}, terms{c, s}, 55 * time.Second},
		{"a list of ages", []string{"Cache-Control: max-age=60", "Age: 55, 1"}, terms{5 * time.Second, 0}, 55 * time.Second},
		{"an invalid Age", []string{"Cache-Control: max-age=60", "Age: x"}, terms{c, s}, 0},
		{"Date", []string{"Cache-Control: max-age=60", "Date: " + at(-58*time.Second)}, terms{2 * time.Second, 0}, 58 * time.Second},
		{"the older of Date and Age", []string{"Cache-Control: max-age=60", "Age: 2", "Date: " + at(-58*time.Second)}, terms{2 * time.Second, 0}, 58 * time.Second},
		{"Vary in the list", []string{"Vary: accept-language, Accept-Encoding"}, terms{c, s}, 0},
		{"Vary by shared cookies", []string{"Vary: Cookie"}, terms{c, s}, 0},
		{"no Vary", []string{"Vary: ,"}, terms{c, s}, 0},
	} {
		p := NewPolicy(rules.OnHot{Cache: c, Stale: s, Vary: []string{"header:accept-language", "cookie:lang"}})
		reason, age, got := p.judge(200, headerOf(test.lines...), now, now)
		if reason != ReasonNone || got != test.want || age != test.age {
			t.Errorf("%s: %q %v, age %v; want %v, age %v", test.name, reason, got, age, test.want, test.age)
		}
	}
	// The time of the handler counts as age.
	p := NewPolicy(rules.OnHot{Cache: c})
	if _, age, got := p.judge(200, headerOf("Age: 1", "Cache-Control: max-age=5"), now.Add(-2*time.Second), now); age != 3*time.Second || got.fresh != 2*time.Second {
		t.Errorf("age %v, %v", age, got)
	}
}

func TestAnswersThatAreNot(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		status int
		lines  []string
		want   Reason
	}{
		{200, []string{"Set-Cookie: a=b"}, ReasonSetCookie},
		{200, []string{"Set-Cookie: "}, ReasonSetCookie},
		{200, []string{"Set-Cookie: a=b", "Cache-Control: public, max-age=60"}, ReasonSetCookie},
		{200, []string{"Cache-Control: private"}, ReasonPrivate},
		{200, []string{`Cache-Control: private="x"`}, ReasonPrivate},
		{200, []string{"Cache-Control: no-store"}, ReasonNoStore},
		{200, []string{"Cache-Control: no-store, no-cache, private"}, ReasonNoStore},
		{200, []string{`Cache-Control: x="`}, ReasonNoStore},
		{200, []string{"Cache-Control: no-cache"}, ReasonNoCache},
		{200, []string{"Cache-Control: max-age=60", "Cache-Control: private"}, ReasonPrivate},
		{200, []string{"Cache-Control: max-age=0"}, ReasonExpired},
		{200, []string{"Cache-Control: s-maxage=0, max-age=60"}, ReasonExpired},
		{200, []string{"Expires: 0"}, ReasonExpired},
		{200, []string{"Expires: Thu, 01 Jan 2099 00:00:00 GMT", "Expires: Thu, 01 Jan 2099 00:00:00 GMT"}, ReasonExpired},
		{200, []string{"Expires: " + now.UTC().Format(http.TimeFormat), "Date: " + now.Add(-2*time.Second).UTC().Format(http.TimeFormat)}, ReasonExpired},
		{200, []string{"Expires: Thu, 01 Jan 1970 00:00:00 GMT"}, ReasonExpired},
		{200, []string{"Cache-Control: max-age=60", "Age: 60"}, ReasonExpired},
		{200, []string{"Vary: *"}, ReasonVary},
		{200, []string{"Vary: Accept-Encoding, *"}, ReasonVary},
		{200, []string{"Vary: Origin"}, ReasonVary},
		{200, []string{"Vary: Accept-Encoding", "Vary: Cookie"}, ReasonVary},
		{200, []string{"Content-Range: bytes 0-1/2"}, ReasonContentRange},
		{200, []string{"Trailer: X"}, ReasonTrailer},
		{200, []string{"Trailer:X: 1"}, ReasonTrailer},
		{200, []string{"Content-Type: Text/Event-Stream; charset=utf-8"}, ReasonStream},
		{200, []string{"Content-Length: 1048577"}, ReasonOver},
		{200, []string{"X: " + strings.Repeat("x", 1<<20)}, ReasonOver},
		{404, nil, ReasonStatus},
		{206, nil, ReasonStatus},
		{301, nil, ReasonStatus},
		{304, nil, ReasonStatus},
		{101, nil, ReasonStatus},
		{500, nil, ReasonFailed},
		{503, []string{"Set-Cookie: a=b"}, ReasonFailed},
	} {
		p := NewPolicy(rules.OnHot{Cache: time.Second})
		if got, _, _ := p.judge(c.status, headerOf(c.lines...), now, now); got != c.want {
			t.Errorf("%d %.60q: %q, want %q", c.status, c.lines, got, c.want)
		}
	}
}

// An answer with "Vary: *" matches no request (RFC 9111, section 4.1), whatever the policy names.
func TestVaryByAll(t *testing.T) {
	p := NewPolicy(rules.OnHot{Cache: time.Second, Vary: []string{"header:*", "cookie:*"}})
	if got := p.refuseAnswer(200, headerOf("Vary: *")); got != ReasonVary {
		t.Errorf("%q", got)
	}
}

func TestEndToEndHeaders(t *testing.T) {
	h := headerOf("Connection: X-Hop, close", "X-Hop: 1", "X-End: 1", "Keep-Alive: timeout=5", "Transfer-Encoding: chunked", "Age: 5", "Upgrade: h2c", "Te: x",
		"Proxy-Authenticate: Basic", "Proxy-Authentication-Info: x", "Proxy-Authorization: x")
	keepEndToEnd(h)
	if len(h) != 1 || h.Get("X-End") != "1" {
		t.Error(h)
	}
}

func TestReasonNames(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range Reasons() {
		if r.String() == "" || seen[r.String()] {
			t.Errorf("%d: %q", r, r)
		}
		seen[r.String()] = true
	}
	for r, want := range map[Reason]string{ // one near each border
		ReasonMethod: "hotparam; fwd=method; detail=method", ReasonLong: "hotparam; fwd=request; detail=long",
		ReasonStatus: "hotparam; fwd=miss; detail=status", ReasonOver: "hotparam; fwd=miss; detail=over",
		ReasonFailed: "hotparam; fwd=miss; detail=failed", ReasonClosed: "hotparam; fwd=miss; detail=closed",
	} {
		if got := statusAlone[r][0]; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
