package rules

import (
	"strings"

	"github.com/hotparam/hotparam/internal/base"
)

// MatchesText reports whether a key with this canonical text, of any rule, has all of the
// exception's values. A name is written as in the by: field: "q", "query:q" or "path:id". Names
// and values are compared in their decoded form, and a "*" in a value matches any run of bytes.
// The part that was cut off a long text matches nothing. MatchesText does not allocate and is
// safe for concurrent use.
func (x *Exception) MatchesText(text string) bool {
	// A "?" in a parameter is escaped; one in a resource's name need not be.
	params := text[strings.LastIndexByte(text, '?')+1:]
	for i := range x.Values {
		if !hasValue(params, &x.Values[i]) {
			return false
		}
	}
	return len(x.Values) > 0
}

// Exception returns the first exception of the rule that matches a key with this text, or nil if
// none does.
func (r *Rule) Exception(text string) *Exception {
	for i := range r.Except {
		if r.Except[i].MatchesText(text) {
			return &r.Except[i]
		}
	}
	return nil
}

// hasValue reports whether one of the parameters, in canonical form, matches want.
func hasValue(params string, want *QueryMatch) bool {
	named := want.Param()
	for params != "" {
		var param string
		param, params, _ = strings.Cut(params, "&")
		written, value, ok := strings.Cut(param, "=")
		if !ok {
			continue
		}
		from := Query
		if word, name, ok := strings.Cut(written, ":"); ok { // a colon within a name is escaped
			from, _ = ParseSource(word)
			written = name
		}
		if from == named.Source && matchEscaped(named.Name, written, false) && matchEscaped(want.Value, value, true) {
			return true
		}
	}
	return false
}

// Param returns the source and the name of the parameter, without a value.
func (q *QueryMatch) Param() Param {
	if word, name, ok := strings.Cut(q.Name, ":"); ok && word != "" {
		if source, known := ParseSource(word); known {
			return Param{Source: source, Name: name}
		}
	}
	return Param{Name: q.Name}
}

// matchEscaped reports whether an escaped text matches pattern. If stars is set, a "*" in the
// pattern matches any run of bytes.
func matchEscaped(pattern, s string, stars bool) bool {
	p, i := 0, 0
	star, from := -1, 0 // the last star, and the end of the text that it matches
	for i < len(s) {
		c, n := unescape(s[i:])
		switch {
		case stars && p < len(pattern) && pattern[p] == '*':
			star, from = p, i
			p++
		case p < len(pattern) && pattern[p] == c:
			p++
			i += n
		case star >= 0: // the star matches one byte more
			_, n = unescape(s[from:])
			from += n
			p, i = star+1, from
		default:
			return false
		}
	}
	for stars && p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// unescape returns the first byte of an escaped text in decoded form, and the number of bytes
// that encode it.
func unescape(s string) (c byte, n int) {
	if s[0] == '%' {
		if b, ok := base.Unhex(s); ok {
			return b, 3
		}
	}
	return s[0], 1
}
