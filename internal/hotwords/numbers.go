package hotwords

import (
	"strconv"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// Rate formats a rate of a unit in the syntax of a rules file: "200/s", "10MB/1m".
func Rate(r rules.Rate, unit rules.Unit) string {
	_, per, _ := strings.Cut(r.String(), "/")
	return Count(r.N, unit) + "/" + per
}

// Count formats a number of a unit in the syntax of a rules file.
func Count(n int64, unit rules.Unit) string {
	switch unit {
	case rules.Bytes:
		return Size(n)
	case rules.Millis:
		return Span(time.Duration(n) * time.Millisecond)
	case rules.Units:
		return strconv.FormatInt(n, 10) + " units"
	}
	return strconv.FormatInt(n, 10)
}

// Size formats a number of bytes in the largest unit that divides it: "10MB".
func Size(n int64) string {
	for _, size := range []struct {
		unit  string
		bytes int64
	}{{"TiB", 1 << 40}, {"TB", 1e12}, {"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"KB", 1e3}} {
		if n >= size.bytes && n%size.bytes == 0 {
			return strconv.FormatInt(n/size.bytes, 10) + size.unit
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// Span formats a window or another duration in the syntax of a rules file: "1s", "1m".
func Span(d time.Duration) string {
	if d == time.Second {
		return "1s" // which a rate leaves out
	}
	_, span, _ := strings.Cut(rules.Rate{N: 1, Per: d}.String(), "/")
	return span
}

// Plural formats a number of things: "1 key", "2 keys".
func Plural(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return strconv.Itoa(n) + " " + word
}

// OriginCount formats the count of an origin: "7", or its bounds if it is not exact: "5-7".
func OriginCount(o published.Origin) string {
	if o.Over == 0 {
		return strconv.FormatInt(o.Count, 10)
	}
	return strconv.FormatInt(o.Count-o.Over, 10) + "-" + strconv.FormatInt(o.Count, 10)
}

// OriginSpans returns the times over which the origins of a hot key are counted: one for its
// instances, one for its sampled routes and callers. Both are 0 if the key's window is unknown.
func OriginSpans(h *published.Hot) (instances, sampled time.Duration) {
	if h.Cause.IsZero() {
		return 0, 0
	}
	return h.Cause.Rate.Per, max(published.MinOriginSpan, h.Cause.Rate.Per)
}

// Thousands formats n with separators: 1234567 becomes "1,234,567".
func Thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Seconds formats a time with about three digits.
func Seconds(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d >= 10*time.Second:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(100 * time.Millisecond)
	default:
		d = d.Round(time.Millisecond)
	}
	return d.String()
}
