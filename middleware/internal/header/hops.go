package header

import "strings"

// hops reads the entries of a header that proxies append to, from the last to the first.
// Each step reads one entry and nothing to the left of it, so a client's text cannot change
// how a proxy's entry is read.
type hops struct {
	lines     []string // the unread lines; a proxy may add a line instead of appending
	unread    string   // the unread part of the present line
	forwarded bool     // whether entries may have quoted strings
}

// next returns the entry to the left of the previous one, without surrounding spaces. It
// skips empty entries.
func (h *hops) next() (entry string, ok bool) {
	for {
		for h.unread == "" {
			n := len(h.lines)
			if n == 0 {
				return "", false
			}
			h.unread, h.lines = h.lines[n-1], h.lines[:n-1]
		}
		comma := strings.LastIndexByte(h.unread, ',')
		if h.forwarded {
			comma = lastComma(h.unread)
		}
		entry = trimSpaces(h.unread[comma+1:])
		h.unread = h.unread[:max(0, comma)]
		if entry != "" {
			return entry, true
		}
	}
}

// lastComma returns the index of the last comma of s outside quoted strings, or -1 if there
// is none.
func lastComma(s string) int {
	for i := len(s) - 1; i >= 0; i-- {
		switch s[i] {
		case ',':
			return i
		case '"':
			i = openingQuote(s, i)
		}
	}
	return -1
}

// openingQuote returns the index of the quote that opens the string ending at end, or -1.
// A quote behind an odd number of backslashes is part of the string.
func openingQuote(s string, end int) int {
	for i := end - 1; i >= 0; i-- {
		if s[i] != '"' {
			continue
		}
		start := i
		for start > 0 && s[start-1] == '\\' {
			start--
		}
		if (i-start)%2 == 0 {
			return i
		}
		i = start
	}
	return -1
}

// forwardedFor returns the node of the parameter "for" in an element of Forwarded
// (RFC 7239, section 4). found is false if the element has none, or two.
func forwardedFor(element string) (node string, found bool) {
	for element != "" {
		end := pairEnd(element)
		pair := element[:end]
		element = element[min(end+1, len(element)):]
		name, value, ok := strings.Cut(pair, "=")
		if !ok || !strings.EqualFold(trimSpaces(name), "for") {
			continue
		}
		if found {
			return "", false
		}
		node, found = unquote(trimSpaces(value)), true
	}
	return node, found
}

// pairEnd returns the index of the ";" that ends the first pair of an element, or len(s). It
// ignores a ";" in a quoted string.
func pairEnd(s string) int {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == '\\' && quoted:
			i++
		case s[i] == ';' && !quoted:
			return i
		}
	}
	return len(s)
}

// unquote returns the value of a token or a quoted string. If s is neither, unquote returns
// it unchanged.
func unquote(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	s = s[1 : len(s)-1]
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b = append(b, s[i])
	}
	return string(b)
}
