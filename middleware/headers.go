package middleware

import (
	"net/http"
	"strconv"
	"time"

	"github.com/hotparam/hotparam"
)

// HeaderStyle is a set of headers by which responses state limits.
type HeaderStyle uint8

// Header styles.
const (
	// RateLimitHeaders are RateLimit-Policy and RateLimit, of
	// draft-ietf-httpapi-ratelimit-headers-10.
	RateLimitHeaders HeaderStyle = iota
	// LegacyHeaders are X-RateLimit-Limit, X-RateLimit-Remaining and
	// X-RateLimit-Reset, the last in seconds since the Unix epoch.
	LegacyHeaders
)

// headers are the styles that are in use.
type headers struct{ draft, legacy bool }

// WithHeaders has responses state the limit that decided: the tightest of those that
// allowed the request, or the one that refused it. The limit's name is the rule's id.
// Without styles it uses RateLimitHeaders.
//
//	RateLimit-Policy: "search";q=100;w=60
//	RateLimit: "search";r=50;t=30
func WithHeaders(styles ...HeaderStyle) Option {
	return func(o *options) {
		o.headers.draft = o.headers.draft || len(styles) == 0
		for _, style := range styles {
			switch style {
			case RateLimitHeaders:
				o.headers.draft = true
			case LegacyHeaders:
				o.headers.legacy = true
			}
		}
	}
}

// add returns h with the headers for a decision by a limit. h may be nil.
func (s headers) add(h http.Header, d *hotparam.Decision, spec *limitSpec) http.Header {
	if d.Rule == "" || d.Limit < 1 || !s.draft && !s.legacy {
		return h
	}
	if h == nil {
		h = make(http.Header, 3)
	}
	if s.draft {
		h.Set("RateLimit-Policy", policy(d, spec))
		limit := `"` + d.Rule + `";r=` + strconv.FormatInt(d.Remaining, 10)
		if d.ResetAfter > 0 {
			limit += ";t=" + strconv.FormatInt(wholeSeconds(d.ResetAfter), 10)
		}
		h.Set("RateLimit", limit)
	}
	if s.legacy {
		h.Set("X-RateLimit-Limit", strconv.FormatInt(d.Limit, 10))
		h.Set("X-RateLimit-Remaining", strconv.FormatInt(d.Remaining, 10))
		h.Set("X-RateLimit-Reset", strconv.FormatInt(time.Now().Unix()+wholeSeconds(d.ResetAfter), 10))
	}
	return h
}

// units are the units of quotas that do not count requests.
var units = [...]string{hotparam.Bytes: "content-bytes", hotparam.Millis: "ms", hotparam.Units: "units"}

// policy returns the value of RateLimit-Policy: the limit, and the time in which all of it
// becomes available.
func policy(d *hotparam.Decision, spec *limitSpec) string {
	p := `"` + d.Rule + `";q=` + strconv.FormatInt(d.Limit, 10)
	q := spec.quota.Load()
	switch {
	case d.Reason == hotparam.ReasonBusy || q == nil:
		return p + `;qu="concurrent-requests"`
	case spec.unit != hotparam.Requests:
		p += `;qu="` + units[spec.unit] + `"`
	}
	window := q.Rate.Per
	if !q.Algorithm.Windowed() {
		window = time.Duration(float64(q.Rate.Per) * float64(q.Burst) / float64(q.Rate.N))
	}
	return p + ";w=" + strconv.FormatInt(wholeSeconds(window), 10)
}

// wholeSeconds returns d in seconds, rounded up.
func wholeSeconds(d time.Duration) int64 {
	n := int64(d / time.Second)
	if d%time.Second > 0 {
		n++
	}
	return n
}
