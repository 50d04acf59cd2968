package answer

import (
	"encoding/json"
	"strconv"
	"time"
)

// Problem is the default answer to a refused request.
type Problem struct {
	Status int
	rule   string
	retry  int64 // time until a retry can pass, in seconds; zero if none can
}

// NewProblem returns the answer with a status, which is 429, 503, 403 or 400. rule is the rule
// that refused the request, and wait is how long its client should wait before it retries.
func NewProblem(status int, rule string, wait time.Duration) Problem {
	p := Problem{Status: status, rule: rule, retry: Seconds(wait)}
	switch status {
	case 503:
		p.retry = max(1, p.retry)
	case 403, 400:
		p.retry = 0
	}
	return p
}

// WriteTo adds the headers and the body to b.
func (p *Problem) WriteTo(b *Buffer) {
	b.Add("Content-Type", "application/problem+json")
	b.Add("Cache-Control", "no-store")
	if p.retry > 0 {
		b.Text = strconv.AppendInt(b.Text, p.retry, 10)
		b.End("Retry-After")
	}
	b.Body = p.appendBody(b.Body)
}

// The bodies, or their beginnings, which end within the detail.
const (
	types      = `{"type":"https://iana.org/assignments/http-problem-types#`
	quota      = types + `quota-exceeded","title":"Too Many Requests","status":429,"detail":"too many requests for these parameters`
	capacity   = types + `temporary-reduced-capacity","title":"Service Unavailable","status":503,"detail":"no room for such requests now`
	forbidden  = `{"type":"about:blank","title":"Forbidden","status":403}` + "\n"
	unreadable = `{"type":"about:blank","title":"Bad Request","status":400,"detail":"the body is too large, compressed, or not what its Content-Type says"}` + "\n"
)

func (p *Problem) appendBody(dst []byte) []byte {
	switch p.Status {
	case 403:
		return append(dst, forbidden...)
	case 400:
		return append(dst, unreadable...)
	case 503:
		dst = append(dst, capacity...)
	default:
		dst = append(dst, quota...)
	}
	if p.retry > 0 {
		dst = strconv.AppendInt(append(dst, "; retry in "...), p.retry, 10)
		dst = append(dst, " s"...)
	}
	dst = appendString(append(dst, `","violated-policies":[`...), p.rule)
	return append(dst, "]}\n"...)
}

// appendString appends s as a JSON string, with the escapes of encoding/json.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(dst, quoted...)
		}
	}
	dst = append(append(dst, '"'), s...)
	return append(dst, '"')
}

// Seconds returns d in seconds, rounded up.
func Seconds(d time.Duration) int64 {
	n := int64(d / time.Second)
	if d%time.Second > 0 {
		n++
	}
	return n
}
