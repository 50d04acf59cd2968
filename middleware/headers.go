package middleware

import (
	"net/http"
	"strconv"
	"time"

	"github.com/hotparam/hotparam/internal/answer"
	"github.com/hotparam/hotparam/rules"
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

// headers are the styles in use.
type headers struct{ draft, legacy bool }

// WithHeaders makes responses state the limit that decided: the tightest limit that allowed
// the request, or the one that refused it. The limit's name is the rule's id.
// Without styles, it uses RateLimitHeaders.
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

// addHeaders adds the headers that state the limit to b, if a limit decided.
func (s *limitSpec) addHeaders(b *answer.Buffer, d *rules.Decision) {
	if d.Rule == "" || d.Limit < 1 {
		return
	}
	if s.headers.draft {
		b.Text = s.appendPolicy(b.Text, d)
		b.End("Ratelimit-Policy")
		b.Text = append(appendName(b.Text, d.Rule), ";r="...)
		b.Text = strconv.AppendInt(b.Text, d.Remaining, 10)
		if d.ResetAfter > 0 {
			b.Text = strconv.AppendInt(append(b.Text, ";t="...), answer.Seconds(d.ResetAfter), 10)
		}
		b.End("Ratelimit")
	}
	if s.headers.legacy {
		b.Text = strconv.AppendInt(b.Text, d.Limit, 10)
		b.End("X-Ratelimit-Limit")
		b.Text = strconv.AppendInt(b.Text, d.Remaining, 10)
		b.End("X-Ratelimit-Remaining")
		b.Text = strconv.AppendInt(b.Text, time.Now().Unix()+answer.Seconds(d.ResetAfter), 10)
		b.End("X-Ratelimit-Reset")
	}
}

// setHeaders sets the headers that state the limit in header.
func (s *limitSpec) setHeaders(header http.Header, d *rules.Decision) {
	if s.headers == (headers{}) {
		return
	}
	b := answer.NewBuffer()
	s.addHeaders(b, d)
	b.SetHeaders(header)
	b.Free()
}

// appendName appends a limit's name as a string of a structured field.
func appendName(dst []byte, rule string) []byte {
	dst = append(append(dst, '"'), rule...)
	return append(dst, '"')
}

// units are the units of quotas that do not count requests.
var units = [...]string{rules.Bytes: "content-bytes", rules.Millis: "ms", rules.Units: "units"}

// appendPolicy appends the value of RateLimit-Policy: the limit, and the time in which all of
// it becomes available.
func (s *limitSpec) appendPolicy(dst []byte, d *rules.Decision) []byte {
	dst = strconv.AppendInt(append(appendName(dst, d.Rule), ";q="...), d.Limit, 10)
	q := s.quota.Load()
	switch {
	case d.Reason == rules.ReasonBusy || q == nil:
		return append(dst, `;qu="concurrent-requests"`...)
	case s.unit != rules.Requests:
		dst = appendName(append(dst, ";qu="...), units[s.unit])
	}
	window := q.Rate.Per
	if !q.Algorithm.Windowed() {
		window = time.Duration(float64(q.Rate.Per) * float64(q.Burst) / float64(q.Rate.N))
	}
	return strconv.AppendInt(append(dst, ";w="...), answer.Seconds(window), 10)
}
