package header

import "strings"

// Cookie returns the value of the first cookie of this name in a Cookie header, and the
// rest of the header behind it. It reads the same cookies as net/http, without a copy: a cookie
// whose value net/http refuses, so that no handler sees it, is skipped. A header of n bytes
// takes n steps. Unlike net/http, Cookie also reads a header of more than 3,000 cookies, so
// that a client cannot hide one behind others.
func Cookie(line, name string) (value, tail string, found bool) {
	for line != "" {
		var part string
		part, line, _ = strings.Cut(line, ";")
		part = trimSpaces(part)
		if !strings.HasPrefix(part, name) {
			continue
		}
		written, value, _ := strings.Cut(part, "=")
		if trimSpaces(written) != name {
			continue
		}
		if n := len(value); n > 1 && value[0] == '"' && value[n-1] == '"' {
			value = value[1 : n-1]
		}
		if isCookieValue(value) {
			return value, line, true
		}
	}
	return "", "", false
}

// trimSpaces removes the spaces around s.
func trimSpaces(s string) string { return strings.Trim(s, " \t\r\n") }

func isCookieValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == ';' || c == '\\' {
			return false
		}
	}
	return true
}
