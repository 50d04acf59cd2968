package middleware

import (
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

// add adds the headers that state the limit to b, if a limit decided. q is its quota, or nil.
func (h headers) add(b *answer.Buffer, d *rules.Decision, q *rules.Quota, unit rules.Unit) {
	if d.Rule == "" || d.Limit < 1 {
		return
	}
	if h.draft {
		b.Text = appendPolicy(b.Text, d, q, unit)
		b.End("Ratelimit-Policy")
		b.Text = append(appendName(b.Text, d.Rule), ";r="...)
		b.Text = strconv.AppendInt(b.Text, d.Remaining, 10)
		if d.ResetAfter > 0 {
			b.Text = strconv.AppendInt(append(b.Text, ";t="...), answer.Seconds(d.ResetAfter), 10)
		}
		b.End("Ratelimit")
	}
	if h.legacy {
		b.Text = strconv.AppendInt(b.Text, d.Limit, 10)
		b.End("X-Ratelimit-Limit")
		b.Text = strconv.AppendInt(b.Text, d.Remaining, 10)
		b.End("X-Ratelimit-Remaining")
		b.Text = strconv.AppendInt(b.Text, time.Now().Unix()+answer.Seconds(d.ResetAfter), 10)
		b.End("X-Ratelimit-Reset")
	}
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
func appendPolicy(dst []byte, d *rules.Decision, q *rules.Quota, unit rules.Unit) []byte {
	dst = strconv.AppendInt(append(appendName(dst, d.Rule), ";q="...), d.Limit, 10)
	switch {
	case d.Reason == rules.ReasonBusy || q == nil:
		return append(dst, `;qu="concurrent-requests"`...)
	case unit != rules.Requests:
		dst = appendName(append(dst, ";qu="...), units[unit])
	}
	window := q.Rate.Per
	if !q.Algorithm.Windowed() {
		window = time.Duration(float64(q.Rate.Per) * float64(q.Burst) / float64(q.Rate.N))
	}
	return strconv.AppendInt(append(dst, ";w="...), answer.Seconds(window), 10)
}
