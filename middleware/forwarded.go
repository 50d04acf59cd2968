package middleware

import "strings"

// hops are the entries of a header that proxies append to, from the last one to the first.
// Each step reads one entry and nothing on the left of it, so what a client has sent cannot
// change how the entry of a proxy is read.
type hops struct {
	lines     []string // those that are left; a proxy may add one instead of appending
	rest      string   // of the present line
	forwarded bool     // entries may have quoted strings
}

// next returns the entry before the last one, without spaces around it. Empty ones are left
// out.
func (h *hops) next() (entry string, ok bool) {
	for {
		for h.rest == "" {
			n := len(h.lines)
			if n == 0 {
				return "", false
			}
			h.rest, h.lines = h.lines[n-1], h.lines[:n-1]
		}
		comma := strings.LastIndexByte(h.rest, ',')
		if h.forwarded {
			comma = lastComma(h.rest)
		}
		entry = trimSpaces(h.rest[comma+1:])
		h.rest = h.rest[:max(0, comma)]
		if entry != "" {
			return entry, true
		}
	}
}

// lastComma returns where the last comma of s is that stands in no quoted string; -1 if
// there is none.
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

// openingQuote returns where the quoted string begins that ends before end; -1 if nowhere.
// A quote behind an odd number of backslashes is a part of the string.
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
// (RFC 7239, 4). found is false if the element has none, or two.
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

// pairEnd returns where the first pair of an element ends: at a ";" in no quoted string.
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

// unquote returns what a token or a quoted string stands for. It returns s itself if it is
// neither.
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
