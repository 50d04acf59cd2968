package hotparam

import (
	"fmt"
	"slices"
	"strings"
)

// Validate checks what a rules file cannot get wrong but code can.
func (r *Rules) Validate() error {
	if !validName(r.Namespace, true) {
		return fmt.Errorf("namespace %q: want one or more of A-Z a-z 0-9 _ -", r.Namespace)
	}
	seen := make(map[string]bool, len(r.Rules))
	prefixes := make(map[string]string, len(r.Rules)) // of counts → rule
	for i := range r.Rules {
		rule := &r.Rules[i]
		if err := rule.validate(); err != nil {
			return fmt.Errorf("rule %d (%q): %w", i+1, rule.ID, err)
		}
		if seen[rule.ID] {
			return fmt.Errorf("rule %d: id %q is used twice", i+1, rule.ID)
		}
		seen[rule.ID] = true
		if len(rule.Hot) == 0 {
			continue
		}
		prefix := rule.CountPrefix(r.Namespace)
		if other, ok := prefixes[prefix]; ok {
			return fmt.Errorf("rule %d (%q): its counts have the prefix %q, as those of %q: they could not be told apart", i+1, rule.ID, prefix, other)
		}
		prefixes[prefix] = rule.ID
	}
	return nil
}

func (r *Rule) validate() error {
	switch {
	case !ValidRuleID(r.ID):
		return fmt.Errorf("id: want one or more of a-z 0-9 _ -")
	case r.Match.Route.IsZero():
		return fmt.Errorf("match.route is missing; use \"*\" for every request")
	case r.Ignore && (len(r.Hot) > 0 || r.Limit != nil || len(r.Except) > 0 || r.Count != Requests):
		return fmt.Errorf("an ignore rule takes neither hot nor limit, count or exceptions")
	case !r.Ignore && len(r.Hot) == 0 && !r.limits() && !slices.ContainsFunc(r.Except, Exception.blocks):
		return fmt.Errorf("neither hot nor limit, and no exception that blocks: the rule does nothing")
	case r.Count > Units:
		return fmt.Errorf("count: unit %d is none", r.Count)
	case r.Count != Requests && len(r.Hot) == 0 && !r.limits():
		return fmt.Errorf("count %v: with neither hot nor limit nothing is counted", r.Count)
	case r.Prefix != "" && !validPrefix(r.Prefix):
		return fmt.Errorf("prefix %q: want words of A-Z a-z 0-9 _ - joined by dots, none of them hot_param", r.Prefix)
	case r.By.Kind == ByNone && len(r.Hot) > 0:
		return fmt.Errorf("hot needs by: without parameters there is no key")
	case r.By.Kind == ByCombinations && len(r.Hot) == 0:
		return fmt.Errorf("by: combinations need hot: for a limit alone, by each does the same")
	}
	if err := r.By.validate(); err != nil {
		return err
	}
	if err := r.validateHot(); err != nil {
		return err
	}
	if len(r.Except) > MaxExceptions {
		return fmt.Errorf("%d exceptions: at most %d, since each key is compared with them", len(r.Except), MaxExceptions)
	}
	for i := range r.Except {
		if err := r.Except[i].validate(r); err != nil {
			return fmt.Errorf("exception %d: %w", i+1, err)
		}
	}
	return r.Limit.Validate(r.Count)
}

// limits tells whether the rule holds any request to a limit.
func (r *Rule) limits() bool {
	return r.Limit != nil || slices.ContainsFunc(r.Except, func(x Exception) bool { return x.Limit != nil })
}

func (b *By) validate() error {
	named := b.Kind == ByNames || b.Kind == ByCombinations
	switch {
	case b.Kind > ByCombinations:
		return fmt.Errorf("by: kind %d is none", b.Kind)
	case b.Kind == ByNames && len(b.Names) == 0:
		return fmt.Errorf("by: no names")
	case !named && len(b.Names) > 0:
		return fmt.Errorf("by: names are for ByNames and ByCombinations")
	case b.Kind == ByCombinations && len(b.Names) > MaxCombined:
		return fmt.Errorf("by: %d names: at most %d are combined", len(b.Names), MaxCombined)
	}
	for i, p := range b.Names {
		switch {
		case p.Name == "" || p.Value != "" || p.Source >= sources:
			return fmt.Errorf("by: want a source and a name, without a value: %+v", p)
		case slices.Contains(b.Names[:i], p):
			return fmt.Errorf("by: %q is named twice", p.Name)
		}
	}
	return nil
}

func (r *Rule) validateHot() error {
	if len(r.Hot) > MaxThresholds {
		return fmt.Errorf("hot: %d thresholds, at most %d", len(r.Hot), MaxThresholds)
	}
	for i := range r.Hot {
		t := &r.Hot[i]
		if err := t.validate(); err != nil {
			return err
		}
		same := func(other Threshold) bool { return other.Kind == t.Kind && other.Rate.Per == t.Rate.Per }
		if slices.ContainsFunc(r.Hot[:i], same) {
			return fmt.Errorf("hot: two thresholds of the same kind over %v", t.Rate.Per)
		}
	}
	return nil
}

func (t *Threshold) validate() error {
	rate := "hot.rate"
	if t.Kind != Absolute {
		rate = "hot.min"
	}
	switch {
	case t.Rate.N < 1 || t.Rate.Per < MinWindow || t.Rate.Per > MaxWindow:
		return fmt.Errorf("%s %q: want a count of at least 1, and a window of %v to %v", rate, t.Rate, MinWindow, MaxWindow)
	case t.Exit.Num < 1 || t.Exit.Den < t.Exit.Num:
		return fmt.Errorf("hot.exit %d/%d: must be above 0 and at most 1", t.Exit.Num, t.Exit.Den)
	case t.Hold < 0:
		return fmt.Errorf("hot.hold %v: must not be negative", t.Hold)
	case t.CoolDown < 0:
		return fmt.Errorf("hot.cool_down %v: must not be negative", t.CoolDown)
	case t.Kind > Top:
		return fmt.Errorf("hot kind %d is none", t.Kind)
	case t.Kind != Share && t.Kind != Jump && t.Factor != Fraction{}:
		return fmt.Errorf("hot: a factor of %d/%d is for a share or a jump", t.Factor.Num, t.Factor.Den)
	case t.Kind == Share && (t.Factor.Num < 1 || t.Factor.Den < t.Factor.Num):
		return fmt.Errorf("hot.share %d/%d: must be above 0 and at most 1", t.Factor.Num, t.Factor.Den)
	case t.Kind == Jump && (t.Factor.Den < 1 || t.Factor.Cmp(1) <= 0 || t.Factor.Cmp(MaxFactor) > 0):
		return fmt.Errorf("hot.jump %d/%d: must be above 1 and at most %d", t.Factor.Num, t.Factor.Den, int64(MaxFactor))
	case t.Kind != Top && t.Top != 0:
		return fmt.Errorf("hot: a number of %d is for top", t.Top)
	case t.Kind == Top && (t.Top < 1 || t.Top > MaxTop):
		return fmt.Errorf("hot.top %d: must be 1 to %d", t.Top, MaxTop)
	}
	return nil
}

func (x Exception) blocks() bool { return x.Action == Block }

func (x *Exception) validate(r *Rule) error {
	sameWindow := func(t Threshold) bool { return t.Kind == Absolute && t.Rate.Per == x.Rate.Per }
	switch {
	case len(x.Values) == 0:
		return fmt.Errorf("no values")
	case x.Action > Block:
		return fmt.Errorf("action %d is none", x.Action)
	case x.Action != Adjust && (!x.Rate.IsZero() || x.Limit != nil):
		return fmt.Errorf("to allow or block takes neither rate nor limit")
	case x.Action == Adjust && x.Rate.IsZero() && x.Limit == nil:
		return fmt.Errorf("neither action nor rate nor limit: it does nothing")
	case !x.Rate.IsZero() && (x.Rate.N < 1 || !slices.ContainsFunc(r.Hot, sameWindow)):
		return fmt.Errorf("rate %q: the rule has no absolute threshold over that window", x.Rate)
	}
	if err := r.By.canHold(x.Values); err != nil {
		return err
	}
	return x.Limit.Validate(r.Count)
}

// canHold tells why no key can have all of the values; nil if one can.
func (b *By) canHold(values []QueryMatch) error {
	var params []Param
	for i := range values {
		p := values[i].Param()
		switch {
		case p.Name == "":
			return fmt.Errorf("a value of no name")
		case len(b.Names) > 0 && !slices.Contains(b.Names, p):
			return fmt.Errorf("%q is none of the names of by", values[i].Name)
		case !slices.Contains(params, p):
			params = append(params, p)
		}
	}
	switch {
	case b.Kind == ByNone:
		return fmt.Errorf("it needs by: without parameters there is no key that has values")
	case b.Kind == ByEach && len(params) > 1:
		return fmt.Errorf("%d parameters: a key has one of them, by each", len(params))
	case b.Kind == ByCombinations && len(params) > MaxCombination:
		return fmt.Errorf("%d parameters: a key combines at most %d", len(params), MaxCombination)
	}
	return nil
}

// ValidNamespace tells whether s can be a namespace: [A-Za-z0-9_-]+.
func ValidNamespace(s string) bool { return validName(s, true) }

// ValidRuleID tells whether s can be a rule's id: [a-z0-9_-]+.
func ValidRuleID(s string) bool { return validName(s, false) }

// validPrefix tells whether s can stand before ".hot_param." in a line.
func validPrefix(s string) bool {
	for word := range strings.SplitSeq(s, ".") {
		if !validName(word, true) || word == "hot_param" {
			return false
		}
	}
	return len(s) <= 2*maxName+1
}

// maxName bounds ids and namespaces, so that a StatsD line has room for a key.
const maxName = 64

func validName(s string, upper bool) bool {
	if s == "" || len(s) > maxName {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '_', c == '-':
		case upper && 'A' <= c && c <= 'Z':
		default:
			return false
		}
	}
	return true
}
