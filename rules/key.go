package rules

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/hotparam/hotparam/internal/base"
)

// Key identifies a count: a rule's id and the canonical text of the parameters
// that make the key, for example rule "search-terms" and text
// "GET /search?q=phone". The grammar of the text is
//
//	route?[source:]name=value&…
//
// with the parameters sorted by name, then value, then source. Without parameters there is no
// "?". Names and values are decoded as forms are, then every byte except A-Z a-z 0-9 - . _ ~ is
// written as %HH. So two requests have the same text exactly when they have the same route and
// the same multiset of parameters.
//
// A text that ends in "~more" instead of parameters counts requests with more than [MaxKeys] keys
// of a rule, each of them once for all keys beyond. A text that ends in "form:~unread" or
// "json:~unread" counts requests whose body could not be read.
type Key struct {
	Rule string
	Text string
}

// String returns the key as a member of the published set: rule id, space, text. A rule id
// contains no space, so [ParseKey] can read it.
func (k Key) String() string { return k.Rule + " " + k.Text }

// Compare orders keys by rule, then by text.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Rule, other.Rule), cmp.Compare(k.Text, other.Text))
}

// ParseKey reads the text that [Key.String] returns.
func ParseKey(member string) (Key, bool) {
	rule, text, ok := strings.Cut(member, " ")
	return Key{Rule: rule, Text: text}, ok && rule != ""
}

// Text returns the canonical text of a route and its parameters, as a rule with "by: all" makes
// it, except that nothing is left out or cut.
func Text(route string, params ...Param) string {
	params = slices.Clone(params)
	for i := range params {
		if p := &params[i]; p.Source == Header {
			p.Name = string(base.LowerFrom([]byte(p.Name), 0))
		}
	}
	slices.SortFunc(params, func(a, b Param) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Source, b.Source))
	})
	dst := append([]byte(route), '?')
	for _, p := range params {
		if p.Source != Query {
			dst = append(append(dst, p.Source.String()...), ':')
		}
		dst = append(base.AppendEscaped(dst, p.Name), '=')
		dst = append(base.AppendEscaped(dst, p.Value), '&')
	}
	return string(dst[:len(dst)-1]) // the last "?" or "&" separates nothing
}

// seed keys Hash, so that no client can choose parameters that collide.
var seed = maphash.MakeSeed()

// Hash returns the 64-bit keyed hash of a key's canonical bytes ([Key.String]), never 0. It
// differs from process to process and is only a filter: after a match, compare the bytes.
func Hash(member []byte) uint64 {
	if h := maphash.Bytes(seed, member); h != 0 {
		return h
	}
	return 1
}

// MaxText is the greatest length of a key's text, in bytes.
const MaxText = 512
