package hotparam

import "strings"

// Key is what is counted: a rule's id and the canonical text of the parameters
// that make the key, for example rule "search-terms" and text
// "GET /search?q=phone". The grammar of the text is
//
//	route?[source:]name=value&…
//
// with the parameters sorted by name, then value, then source; no parameters,
// no "?". Two requests have the same text exactly when they have the same
// route and the same multiset of parameters.
type Key struct {
	Rule string
	Text string
}

// String is the key as a member of the published set: rule id, space, text.
// A rule id holds no space, so [ParseKey] reads it back.
func (k Key) String() string { return k.Rule + " " + k.Text }

// ParseKey reads what [Key.String] wrote.
func ParseKey(member string) (Key, bool) {
	rule, text, ok := strings.Cut(member, " ")
	return Key{Rule: rule, Text: text}, ok && rule != ""
}
