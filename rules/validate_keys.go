package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hotparam/hotparam/internal/base"
)

// validateBy reports errors of the parameters that make the rule's keys.
func (r *Rule) validateBy(bad *FieldErrors, rules *Rules) {
	b, hot := &r.By, len(r.Hot) > 0
	switch {
	case b.Kind > ByCombinations:
		bad.add("by", "", "want all, each, combinations or a list of names", "kind %d is none", b.Kind)
		return
	case b.Kind == ByNone && hot:
		bad.add("by", "", "add by: all", "hot needs by: without parameters there is no key").needs("by")
	case b.Kind == ByNames && len(b.Names) == 0:
		bad.add("by", "", "name at least one parameter, or write by: all", "the list is empty")
	case b.Kind != ByNames && b.Kind != ByCombinations && len(b.Names) > 0:
		bad.add("by", "", "remove them, or change the kind", "names are for ByNames and ByCombinations")
		return
	case b.Kind == ByCombinations && !hot:
		bad.add("by", "", "add hot, or write by: each, which limits as tightly: a combination is never more frequent than its parts", "combinations are for rules with hot").needs("hot")
	}
	if b.Kind == ByCombinations && len(b.Names) > MaxCombined {
		bad.addSentence(fmt.Sprintf("by[%d]", MaxCombined), "name those that matter, or watch the others by a rule of their own", "by: more than %d names to combine", MaxCombined)
	}
	for i, p := range b.Names {
		field := fmt.Sprintf("by[%d]", i)
		switch message, hint := p.CheckName(); {
		case p.Name == "" || p.Value != "" || p.Source >= sources:
			bad.add(field, fmt.Sprintf("%+v", p), "for example q, query:q or path:id", "want a source and a name, without a value")
		case slices.Contains(b.Names[:i], p):
			bad.add(field, quoted(p.FormatName()), "keep one of them", "the parameter is named twice")
		case message != "":
			bad.add(field, quoted(p.FormatName()), hint, "%s", message)
		case hot && rules.makesNoKey(p):
			addSecret(bad, field, p)
		case p.Source == Addr:
			b.validateLevel(bad, i)
		}
	}
}

// validateLevel reports a level of the address that is the same as an earlier one, or, in a key
// of all names, overlaps it. Combinations never have two levels.
func (b *By) validateLevel(bad *FieldErrors, i int) {
	level, _ := base.ParseAddrLevel(b.Names[i].Name)
	for _, p := range b.Names[:i] {
		earlier, ok := base.ParseAddrLevel(p.Name)
		if p.Source != Addr || !ok {
			continue
		}
		field, value := fmt.Sprintf("by[%d]", i), quoted(b.Names[i].FormatName())
		switch {
		case b.Kind == ByNames && level.Overlaps(earlier):
			bad.add(field, value, fmt.Sprintf("by: {combinations: [%q, %q]} finds which of them explains the traffic; or write a rule for each", p.FormatName(), b.Names[i].FormatName()),
				"a key of %s and of another level of the same address is a key of the narrower level alone", p.FormatName())
		case level.Equals(earlier):
			bad.add(field, value, "keep one of them", "%s is the same network", p.FormatName())
		default:
			continue
		}
		return
	}
}

// addSecret reports a parameter that never leaves the process, and so makes no key that is
// counted.
func addSecret(bad *FieldErrors, field string, p Param) *finding {
	return bad.add(field, quoted(p.FormatName()), "if it holds no secret, add its name to secrets.except in the rules file; if it does, add it to secrets.redact: then its keys have a hash of the value",
		"the parameter looks secret and never leaves the process, so it can make no key")
}

const (
	noEffect     = "allowed and blocked requests are neither counted nor limited"
	noEffectHint = "remove it, or remove the action"
)

func (x *Exception) validate(r *Rule, rules *Rules) (bad FieldErrors) {
	if x.Action > Block {
		bad.add("action", "", "want allow or block", "action %d is none", x.Action)
	}
	if x.Action != Adjust && !x.Rate.IsZero() {
		bad.add("hot", "", noEffectHint, noEffect)
	}
	if x.Action != Adjust && x.Limit != nil {
		bad.add("limit", "", noEffectHint, noEffect)
	}
	if x.Action == Adjust && x.Rate.IsZero() && x.Limit == nil {
		bad.addSentence("", "add action: allow, action: block, hot: 1000/s or limit: 500/s", "the exception has neither action nor hot nor limit: it changes nothing").
			needs("action", "hot", "limit")
	}
	x.validateRate(&bad, r)
	x.validateValues(&bad, r, rules)
	return append(bad, r.validateLimit(x.Limit)...)
}

// validateRate reports a rate that replaces no rate of the rule.
func (x *Exception) validateRate(bad *FieldErrors, r *Rule) {
	if x.Rate.IsZero() {
		return
	}
	var rates []string
	for i := range r.Hot {
		switch t := &r.Hot[i]; {
		case t.Kind != FixedRate:
		case t.Rate.Per == x.Rate.Per && x.Rate.N >= 1:
			return
		default:
			rates = append(rates, t.Rate.String())
		}
	}
	hint := "an exception takes the place of a rate such as hot: 200/s, and the rule has none"
	if len(rates) > 0 {
		hint = "the rule has " + strings.Join(rates, " and ") + ": give a count over the same window"
	}
	bad.add("hot", quoted(x.Rate.String()), hint, "the rule has no rate over that window").needs("../hot")
}

// validateValues reports values that no key of the rule can have together.
func (x *Exception) validateValues(bad *FieldErrors, r *Rule, rules *Rules) {
	if len(x.Values) == 0 {
		bad.add("values", "", `for example values: {q: "phone*"}`, "there are no values")
		return
	}
	var params []Param
	for i := range x.Values {
		p, field := x.Values[i].Param(), fmt.Sprintf("values[%d]", i)
		switch message, hint := p.CheckName(); {
		case message != "":
			bad.add(field, quoted(x.Values[i].Name), hint, "%s", message)
		case len(r.By.Names) == 0 && r.By.Kind != ByNone && isNamedOnly(p.Source):
			bad.add(field, quoted(x.Values[i].Name), fmt.Sprintf("name it: by: [%q]", p.FormatName()), "keys of all parameters have those of the query and the path alone").needs("../by")
		case len(r.By.Names) > 0 && !slices.Contains(r.By.Names, p):
			bad.add(field, quoted(x.Values[i].Name), r.By.meant(x.Values[i].Name, p), "by does not have the parameter").needs("../by")
		case len(r.By.Names) == 0 && r.By.Kind != ByNone && rules.makesNoKey(p):
			addSecret(bad, field, p).needs("../by")
		}
		if !slices.Contains(params, p) {
			params = append(params, p)
		}
	}
	var e *finding
	switch {
	case r.By.Kind == ByNone:
		e = bad.add("values", "", fmt.Sprintf("add by: [%s]", x.Values[0].Name), "the rule has no by, so it makes no keys that could have values")
	case r.By.Kind == ByEach && len(params) > 1:
		e = bad.add("values", "", "write an exception for each of them", "a key of by: each has one parameter, not %d", len(params))
	case r.By.Kind == ByCombinations && len(params) > MaxCombination:
		e = bad.add("values", "", "leave out those that matter least", "a key combines at most %d parameters, not %d", MaxCombination, len(params))
	default:
		return
	}
	e.needs("../by")
}

// isNamedOnly reports whether a guard reads the source only if a rule names its parameter.
func isNamedOnly(s Source) bool {
	return s == Header || s == Cookie || s == Addr || s == Ctx || s.ReadsBody()
}

// meant returns a hint for a name in an exception that is not one of the by: names.
func (b *By) meant(name string, p Param) string {
	var words []string
	for _, known := range b.Names {
		words = append(words, known.FormatName())
	}
	for i, known := range b.Names {
		if known.Name == p.Name { // of another source
			return fmt.Sprintf("did you mean %q?", words[i])
		}
	}
	if near := base.NearestWord(name, words); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "by has " + strings.Join(words, ", ")
}
