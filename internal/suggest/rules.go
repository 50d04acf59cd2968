package suggest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// rulesOf is the rules file by which a part of each route's peak is hot.
func rulesOf(params []*Param, part float64) string {
	var b strings.Builder
	b.WriteString("rules:\n")
	for _, p := range params {
		fmt.Fprintf(&b, "  - id: %s\n    match: {route: %s}\n    by: [%s]\n    hot: %s\n",
			p.rule, quote(p.Route), quote(p.Name), rate(p.threshold(part), p.window))
	}
	return b.String()
}

// quote writes a text as YAML reads it, whatever it holds.
func quote(s string) string { return strconv.QuoteToASCII(s) }

// ruleID names a rule after its route and its parameter.
func ruleID(p *Param, before []*Param) string {
	_, path, _ := strings.Cut(p.Route, " ")
	_, name, found := strings.Cut(p.Name, ":")
	if !found {
		name = p.Name
	}
	var words []string
	for word := range strings.FieldsFuncSeq(path, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') }) {
		words = append(words, strings.ToLower(word))
	}
	words = words[max(0, len(words)-2):]
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') }) {
		if word = strings.ToLower(word); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	id := strings.Join(words, "-")
	if len(id) > 40 {
		id = strings.Trim(id[len(id)-40:], "-")
	}
	if id == "" || id[0] >= '0' && id[0] <= '9' {
		id = "rule-" + id
	}
	unique := id
	for n := 2; slices.ContainsFunc(before, func(other *Param) bool { return other.rule == unique }); n++ {
		unique = id + "-" + strconv.Itoa(n)
	}
	return unique
}
