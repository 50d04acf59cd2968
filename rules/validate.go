package rules

import (
	"fmt"
	"slices"
	"strings"
)

// Validate reports all errors of the rules as [FieldErrors], each with the path of its field and
// a hint. It is the only check of rules, whether a file or code builds them. Package config adds
// the errors that only a file can have, and the line numbers.
func (r *Rules) Validate() error {
	var bad FieldErrors
	if !validName(r.Namespace, true) {
		bad.add("namespace", quoted(r.Namespace), "for example shop, or shop-eu", "want 1 to %d of A-Z a-z 0-9 _ -", maxName)
	}
	bad = append(bad, r.Client.validate()...)
	bad = append(bad, r.Bodies.validate()...)
	bad = append(bad, r.validateLimitKeys()...)
	bad = append(bad, r.Redact.validate(&r.Secrets)...)
	taken := uses{ids: make(map[string]int, len(r.Rules)), prefixes: make(map[string]int, len(r.Rules))}
	for i := range r.Rules {
		rule := &r.Rules[i]
		errs := append(taken.add(r.Namespace, i, rule), rule.validate(r)...)
		for _, e := range errs.below(fmt.Sprintf("rules[%d]", i)) {
			e.rule = fmt.Sprintf("rule %d (%q): ", i+1, rule.ID)
			bad = append(bad, e)
		}
	}
	return bad.err()
}

// uses holds the ids and the count prefixes of the rules, each with the index of its rule.
type uses struct{ ids, prefixes map[string]int }

// add records the id and the prefix of the i-th rule, and returns their errors.
func (u *uses) add(namespace string, i int, rule *Rule) (bad FieldErrors) {
	first, twice := u.ids[rule.ID]
	switch {
	case rule.ID == "":
		bad.addSentence("id", "add id: with a name of a-z 0-9 _ -", "the rule has no id")
	case !ValidRuleID(rule.ID):
		bad.add("id", quoted(rule.ID), "for example search-terms", "want 1 to %d of a-z 0-9 _ -", maxName)
	case twice:
		bad.addSentence("id", "give each rule its own id", "id %q is used twice, first in %s", rule.ID, earlier).
			Earlier = fmt.Sprintf("rules[%d].id", first)
	default:
		u.ids[rule.ID] = i
	}
	prefix := rule.CountPrefix(namespace)
	first, twice = u.prefixes[prefix]
	switch {
	case rule.Prefix != "" && !isPrefix(rule.Prefix):
		bad.add("prefix", quoted(rule.Prefix), "for example shop.search", "want parts of A-Z a-z 0-9 _ - with dots between, %d bytes at most", maxPrefix)
	case len(rule.Hot) == 0 && rule.Prefix == "", rule.Prefix == "" && len(bad) > 0:
		// There are no counts, or no prefix for them.
	case slices.Contains(strings.Split(rule.Prefix, "."), marker), strings.Contains(prefix+".", "."+marker+"."):
		bad.add("prefix", quoted(prefix), "choose another", "%q is between a prefix and its key", marker).needs("id")
	case len(rule.Hot) == 0:
	case twice:
		e := bad.addSentence("prefix", "give one of the two another prefix", "the rule in %[2]s also has prefix %[1]q: their counts could not be distinguished", prefix, earlier)
		e.Earlier = fmt.Sprintf("rules[%d].prefix", first)
	default:
		u.prefixes[prefix] = i
	}
	return bad
}

const limitOrHot = "add limit: {rate: 50/s}, hot: {rate: 200/s} or action: ignore"

func (r *Rule) validate(rules *Rules) (bad FieldErrors) {
	switch {
	case r.Match.Route.IsZero() && len(r.Match.Query) == 0:
		bad.addSentence("match", `add match: {route: "*"} for every request, or a narrower route`, "the rule has no match").needs("match")
	case r.Match.Route.IsZero():
		bad.addSentence("match.route", `add route: "*" for every request, or "GET /search"`, "match.route is missing")
	}
	for i := range r.Match.Query {
		if message, hint := r.Match.Query[i].Param().CheckName(); message != "" {
			bad.add(fmt.Sprintf("match.query[%d]", i), quoted(r.Match.Query[i].Name), hint, "%s", message)
		}
	}
	if r.Ignore {
		if len(r.Hot) > 0 || r.Limit != nil || len(r.Except) > 0 || r.Count != Requests || r.Unread != UnreadLimit || r.OnHot != nil {
			bad.addSentence("action", "remove them, or remove action: ignore", "an ignore rule only exempts requests from the others: it takes neither hot nor limit, count, unread, on_hot or exceptions")
		}
		return bad
	}
	r.validateEffect(&bad)
	if r.Count > Units {
		bad.add("count", "", "want requests, bytes, ms or units", "unit %d is none", r.Count)
	}
	r.validateBy(&bad, rules)
	r.validateUnread(&bad)
	r.validateHot(&bad)
	r.validateOnHot(&bad)
	if len(r.Except) > MaxExceptions {
		bad.addSentence("except", "use patterns: a star matches any text", "%d exceptions: a rule has at most %d, since each key is compared with them", len(r.Except), MaxExceptions)
	}
	for i := range r.Except {
		errs := r.Except[i].validate(r, rules)
		bad = append(bad, errs.below(fmt.Sprintf("except[%d]", i))...)
	}
	r.validateRedacted(&bad, newRedaction(rules.Redact))
	return append(bad, r.validateLimit(r.Limit)...)
}

// validateLimit reports errors of a limit of the rule or of an exception.
func (r *Rule) validateLimit(l *Limit) FieldErrors {
	if l == nil {
		return nil
	}
	resolved := *l
	resolved.Scope = r.ScopeOf(l)
	bad := resolved.validate(r.Count)
	if l.Concurrency == AutoConcurrency {
		r.validateAuto(&bad, l)
	} else if l.Cancel {
		bad.add("limit.cancel", "", "for example {concurrency: auto, cancel: true}", "goes with concurrency: auto").needs("limit")
	}
	if l.Scope != ScopeFleet || !l.Algorithm.Bucket() {
		return bad
	}
	if message := r.WhyNotFleet(l); message != "" {
		hint := scopeHint
		if len(r.Hot) == 0 {
			hint = "leave out scope, or give the rule hot"
		}
		bad.add("limit.scope", quoted(string(l.Scope)), hint, "fleet %s", message).needs("limit")
	}
	return bad
}

// validateAuto reports a limit whose number nothing finds, or that not all instances share.
func (r *Rule) validateAuto(bad *FieldErrors, l *Limit) {
	switch reason := r.WhyNotFleet(l); {
	case !r.HasCost():
		bad.add("limit.concurrency", "auto", "add hot: {cost: auto}, or give a number", "only a rule with hot.cost finds its number").needs("limit")
	case l.Scope != "" && l.Scope != ScopeFleet:
		bad.add("limit.scope", quoted(string(l.Scope)), "leave out scope", "concurrency: auto is over all instances").needs("limit")
	case l.Scope == "" && reason != "":
		bad.addSentence("limit.concurrency", "remove that", "concurrency: auto is over all instances, and scope: fleet %s", reason).needs("limit")
	}
}

// validateEffect reports a rule that does nothing, or whose counts have no use.
func (r *Rule) validateEffect(bad *FieldErrors) {
	limits := r.Limit != nil || slices.ContainsFunc(r.Except, func(x Exception) bool { return x.Limit != nil })
	blocks := slices.ContainsFunc(r.Except, func(x Exception) bool { return x.Action == Block })
	var e *finding
	switch {
	case len(r.Hot) > 0 || limits:
		return
	case r.Count != Requests:
		e = bad.add("count", "", "add hot or limit, or remove count", "the rule has neither hot nor limit, so it counts nothing")
	case blocks:
		return
	case len(r.Except) > 0:
		e = bad.addSentence("", limitOrHot, "the rule has neither hot nor limit, and none of its exceptions blocks: it does nothing")
	default:
		e = bad.addSentence("", limitOrHot, "the rule has neither hot nor limit: it does nothing")
	}
	e.needs("hot", "limit", "action", "except", "allow", "block")
}

func (r *Rule) validateHot(bad *FieldErrors) {
	if len(r.Hot) > maxThresholds {
		bad.addSentence(fmt.Sprintf("hot[%d]", maxThresholds), "each window of a rule takes memory for every key", "hot: more than %d thresholds", maxThresholds)
	}
	if r.HasCost() && r.Count != Millis {
		bad.add("count", quoted(r.Count.String()), "leave out count, or write count: ms", "goes with no hot.cost, which counts the time of requests").needs("hot", "count")
	}
	other := slices.IndexFunc(r.Hot, func(t Threshold) bool { return t.Kind != Cost })
	if r.HasCost() && other >= 0 {
		bad.addSentence(fmt.Sprintf("hot[%d]", other), "give the others a rule of their own", "hot: a cost is the only threshold of its rule, which counts the time of requests alone")
	}
	switch {
	case r.Backend != "" && !r.HasCost():
		bad.add("backend", quoted(r.Backend), "add hot: {cost: auto}, or remove backend", "goes with hot.cost").needs("hot", "backend")
	case r.Backend != "" && !ValidRuleID(r.Backend):
		bad.add("backend", quoted(r.Backend), "for example backend: orders-db", "want at most %d of a-z, 0-9, _ and -", maxName)
	}
	for i := range r.Hot {
		t, parent := &r.Hot[i], fmt.Sprintf("hot[%d]", i)
		errs := t.validate()
		*bad = append(*bad, errs.below(parent)...)
		same := func(other Threshold) bool {
			return other.Kind == t.Kind && other.Rate.Per == t.Rate.Per && other.Over == t.Over
		}
		if earlier := slices.IndexFunc(r.Hot[:i], same); earlier >= 0 && errs == nil {
			kind := t.Kind.String()
			if t.Over != OverRecent {
				kind += " over " + t.Over.String()
			}
			bad.addSentence(parent, "keep one of them, or give them different windows", "hot: a second %s over %v", kind, t.Rate.Per).
				needs(parent, fmt.Sprintf("hot[%d]", earlier))
		}
	}
}

const (
	rateHint  = "200/s is 200 within a second, 60/1m is 60 within a minute"
	leastHint = "min is the count below which no key is hot, for example 50/10s"
)

func (t *Threshold) validate() (bad FieldErrors) {
	if int(t.Kind) >= len(kindNames) {
		bad.add("kind", "", "want one of "+strings.Join(kindNames[:], ", "), "kind %d is none", t.Kind)
		return bad
	}
	count, countHint, window, windowHint := "rate", rateHint, "rate", rateHint
	if t.Kind != FixedRate && t.Kind != Cost {
		count, countHint, window, windowHint = "min", leastHint, "window", "for example window: 10s"
	}
	switch {
	case t.Rate.N < 1:
		bad.add(count, quoted(t.Rate.String()), countHint, "the count must be at least 1")
	case t.Rate.Per < MinWindow || t.Rate.Per > MaxWindow:
		bad.add(window, quoted(t.Rate.String()), windowHint, "the window must be 1s to 1h")
	}
	if t.Exit.Num < 1 || t.Exit.Den < t.Exit.Num {
		bad.add("exit", fmt.Sprintf("%d/%d", t.Exit.Num, t.Exit.Den), "80% is four fifths of the threshold", "must be above 0 and at most 1")
	}
	if t.Hold < 0 {
		bad.add("hold", t.Hold.String(), "hold is the least time for which a key stays hot", "must not be negative")
	}
	if t.CoolDown < 0 {
		bad.add("cool_down", t.CoolDown.String(), "cool_down is how long a key must stay below the exit to cool", "must not be negative")
	}
	t.validateKind(&bad)
	return bad
}

// ValidNamespace reports whether s can be a namespace: [A-Za-z0-9_-]+.
func ValidNamespace(s string) bool { return validName(s, true) }

// ValidRuleID reports whether s can be a rule's id: [a-z0-9_-]+.
func ValidRuleID(s string) bool { return validName(s, false) }

const (
	// maxName bounds ids and namespaces, so that a StatsD line has room for a key.
	maxName = 64
	// maxPrefix is the length of the longest default prefix, in bytes.
	maxPrefix = maxName + 1 + maxName
	// marker separates a prefix from its key in a StatsD line.
	marker = "hot_param"
)

// isPrefix reports whether s consists of words that are valid before ".hot_param." in a line.
func isPrefix(s string) bool {
	for word := range strings.SplitSeq(s, ".") {
		if !validName(word, true) {
			return false
		}
	}
	return len(s) <= maxPrefix
}

func validName(s string, upper bool) bool {
	return len(s) <= maxName && consistsOf(s, func(c byte) bool {
		return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-' || upper && 'A' <= c && c <= 'Z'
	})
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }
