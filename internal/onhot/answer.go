package onhot

import (
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Answer is a recorded response, which must not be changed.
type Answer struct {
	status   int
	header   http.Header
	body     []byte
	age      time.Duration // its age when it was received
	received time.Time
	terms    terms
}

// terms say for how long an answer may be used after it was received.
type terms struct {
	fresh time.Duration
	stale time.Duration // after fresh
}

// judge returns why an answer with this status and header is not for sharing, or ReasonNone, its
// age and the time for which it may be used. The answer was requested at start.
func (p *Policy) judge(status int, h http.Header, start, now time.Time) (r Reason, age time.Duration, t terms) {
	if r := p.refuseAnswer(status, h); r != ReasonNone {
		return r, 0, t
	}
	d := parseDirectives(h["Cache-Control"])
	switch {
	case d.noStore:
		return ReasonNoStore, 0, t
	case d.private:
		return ReasonPrivate, 0, t
	case d.noCache:
		return ReasonNoCache, 0, t
	}
	age = answerAge(h, start, now)
	t = terms{p.Cache, p.Stale}
	if lifetime, ok := lifetime(h, d, now); ok {
		// The policy shortens the lifetime that the handler states, and never adds to it: a stale
		// answer is one that the handler still calls fresh.
		left := lifetime - age
		if left <= 0 {
			return ReasonExpired, 0, terms{}
		}
		t.fresh = min(t.fresh, left)
		t.stale = min(t.stale, left-t.fresh)
	}
	if d.mustRevalidate || d.sMaxAge >= 0 { // s-maxage implies proxy-revalidate
		t.stale = 0
	}
	return ReasonNone, age, t
}

// refuseAnswer returns why the headers other than those of time are not for sharing.
func (p *Policy) refuseAnswer(status int, h http.Header) Reason {
	switch {
	case status >= 500:
		return ReasonFailed
	case has(h, "Set-Cookie"):
		return ReasonSetCookie
	case !slices.Contains(p.Status, status):
		return ReasonStatus
	case has(h, "Content-Range"):
		return ReasonContentRange
	case hasTrailer(h):
		return ReasonTrailer
	case strings.HasPrefix(strings.ToLower(h.Get("Content-Type")), "text/event-stream"):
		return ReasonStream
	case headerBytes(h) > p.Max:
		return ReasonOver
	}
	if n, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64); err == nil && n > p.Max {
		return ReasonOver
	}
	for _, value := range h["Vary"] {
		for name := range strings.SplitSeq(value, ",") {
			if name = textproto.TrimString(name); name != "" && !p.varies(name) {
				return ReasonVary
			}
		}
	}
	return ReasonNone
}

// hasTrailer reports whether h announces trailers, or has some as net/http's handlers set them.
func hasTrailer(h http.Header) bool {
	for name := range h {
		if name == "Trailer" || strings.HasPrefix(name, http.TrailerPrefix) {
			return true
		}
	}
	return false
}

// lifetime returns the freshness lifetime that an answer states (RFC 9111, section 4.2.1).
func lifetime(h http.Header, d directives, now time.Time) (time.Duration, bool) {
	switch {
	case d.sMaxAge >= 0:
		return d.sMaxAge, true
	case d.maxAge >= 0:
		return d.maxAge, true
	case !has(h, "Expires"):
		return 0, false
	}
	expires, ok := parseDate(h["Expires"])
	if !ok {
		return 0, true // a date that is not valid, such as 0, is in the past
	}
	if date, ok := parseDate(h["Date"]); ok {
		now = date
	}
	return expires.Sub(now), true
}

// answerAge returns the age of an answer that was received now (RFC 9111, section 4.2.3).
func answerAge(h http.Header, start, now time.Time) time.Duration {
	var age time.Duration
	if date, ok := parseDate(h["Date"]); ok {
		age = max(0, now.Sub(date).Truncate(time.Second)) // dates have no fractions
	}
	if value := h.Get("Age"); value != "" {
		value, _, _ = strings.Cut(value, ",")
		if n, ok := parseSeconds(textproto.TrimString(value)); ok {
			age = max(age, n+now.Sub(start))
		}
	}
	return age
}

func headerBytes(h http.Header) (n int64) {
	for name, values := range h {
		for _, value := range values {
			n += int64(len(name) + len(value))
		}
	}
	return n
}

// hopByHop are the headers of one connection or one proxy (RFC 9111, section 3.1), and those that
// are written for each use of an answer.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authentication-Info",
	"Proxy-Authorization", "Te", "Transfer-Encoding", "Upgrade", "Age",
}

// keepEndToEnd removes from h the headers of one connection.
func keepEndToEnd(h http.Header) {
	for _, value := range h["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			h.Del(textproto.TrimString(name))
		}
	}
	for _, name := range hopByHop {
		delete(h, name)
	}
}
