package onhot

import (
	"net/http"
	"strings"
	"time"
)

// directives are the parts of Cache-Control that decide something here (RFC 9111, section 5.2).
type directives struct {
	noStore, noCache, private, mustRevalidate bool
	// Negative if absent. The smallest one counts if there are several, and one that is not a
	// number counts as zero, as section 4.2.1 encourages.
	maxAge, sMaxAge, minFresh time.Duration
}

// parseDirectives parses the values of Cache-Control. A field that is not well-formed has
// no-store: what it was meant to forbid is unknown. A semicolon separates as a comma does, since
// that is what its writer meant.
func parseDirectives(values []string) directives {
	d := directives{maxAge: -1, sMaxAge: -1, minFresh: -1}
	for _, s := range values {
		for {
			s = strings.TrimLeft(s, " \t,;")
			if s == "" {
				break
			}
			var name, arg string
			var ok bool
			if name, arg, s, ok = cutDirective(s); !ok {
				d.noStore = true
				break
			}
			d.set(name, arg)
		}
	}
	return d
}

// cutDirective returns the first directive of s and the rest after it.
func cutDirective(s string) (name, arg, rest string, ok bool) {
	n := tokenLen(s)
	name, s = s[:n], strings.TrimLeft(s[n:], " \t")
	if after, found := strings.CutPrefix(s, "="); found {
		if arg, s, ok = cutArgument(strings.TrimLeft(after, " \t")); !ok {
			return "", "", "", false
		}
	}
	s = strings.TrimLeft(s, " \t")
	return name, arg, s, n > 0 && (s == "" || s[0] == ',' || s[0] == ';')
}

// cutArgument returns the token or the quoted string at the beginning of s, and the rest. Escapes
// stay in it, since no argument that is read has any.
func cutArgument(s string) (arg, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		n := tokenLen(s)
		return s[:n], s[n:], true
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return s[1:i], s[i+1:], true
		}
	}
	return "", "", false
}

// tokenLen returns the length of the token at the beginning of s (RFC 9110, section 5.6.2).
func tokenLen(s string) int {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return i
		}
	}
	return len(s)
}

func (d *directives) set(name, arg string) {
	switch strings.ToLower(name) {
	case "no-store":
		d.noStore = true
	case "no-cache":
		d.noCache = true // with fields too: RFC 9111 allows to treat it as if it had none
	case "private":
		d.private = true
	case "must-revalidate", "proxy-revalidate":
		d.mustRevalidate = true
	case "max-age":
		setLeast(&d.maxAge, arg)
	case "s-maxage":
		setLeast(&d.sMaxAge, arg)
	case "min-fresh":
		setLeast(&d.minFresh, arg)
	}
}

func setLeast(d *time.Duration, arg string) {
	if n, _ := parseSeconds(arg); *d < 0 || n < *d {
		*d = n
	}
}

// parseSeconds parses delta-seconds. A larger number counts as 2³¹ (RFC 9111, section 1.2.2).
func parseSeconds(s string) (d time.Duration, ok bool) {
	var n int64
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = min(n*10+int64(s[i]-'0'), 1<<31)
	}
	return time.Duration(n) * time.Second, s != ""
}

// dateLayouts are the forms of an HTTP date (RFC 9110, section 5.6.7).
var dateLayouts = [...]string{http.TimeFormat, "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC}

// parseDate returns the time of an HTTP date. An answer with several has none. Letters may have
// either case (RFC 9111, section 4.2). [http.ParseTime] is not used, since it also takes other
// zones, as if they were GMT, and dates that are not valid, such as one with an hour of one digit.
func parseDate(values []string) (t time.Time, ok bool) {
	if len(values) != 1 {
		return time.Time{}, false
	}
	s := values[0]
	if zone := len(s) - len("GMT"); zone > 0 && strings.EqualFold(s[zone:], "GMT") {
		s = s[:zone] + "GMT"
	}
	for _, layout := range dateLayouts {
		t, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		// The day of the week may be wrong, and decides nothing.
		_, want, _ := strings.Cut(t.Format(layout), " ")
		_, got, _ := strings.Cut(s, " ")
		return t, strings.EqualFold(got, want)
	}
	return time.Time{}, false
}
