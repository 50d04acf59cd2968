package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// foundKey is the key that the operator's words name.
type foundKey struct {
	key       rules.Key
	seen      bool // it is hot, or has a control
	unlimited bool // its rule is known to have no limit with a number
}

// unseenNote returns a remark about a key that was not seen.
func (f *foundKey) unseenNote(namespace string) string {
	return fmt.Sprintf("%s of rule %s is not hot in namespace %s now, and has no control: is it the key of its requests? (hotparam rules explain)", printable(f.key.Text), printable(f.key.Rule), namespace)
}

// keySearch is a search for the key of an operator's action.
type keySearch struct {
	words    string
	hot      []published.Hot
	controls []published.Control
	ruleset  *rules.Rules // nil if the rules are not known
	releases bool         // the action ends a control or a hold
	held     bool         // instances hold keys
}

// findFor returns the key. It returns [hotkeys.ErrNoControl] if there is nothing to release, and
// an error if the action makes no sense for the key.
func (s *keySearch) findFor(action published.ControlAction) (foundKey, error) {
	hot, ruleset := s.hot, s.ruleset
	if s.releases {
		hot = nil // a key to release has a control or is held
		if !s.held {
			ruleset = nil
		}
	}
	found, err := findKeyToControl(s.words, hot, s.controls, ruleset)
	switch {
	case s.releases && !s.held && (errors.Is(err, errUnseen) || err == nil && !found.seen):
		return foundKey{}, hotkeys.ErrNoControl
	case err == nil && action == published.ControlPin && found.unlimited:
		return foundKey{}, fmt.Errorf("pin: rule %q has no limit with a number to hold the key to: give it one in the rules file, or use hotparam block", found.key.Rule)
	}
	return found, err
}

// findKeyToControl returns the key that words name: the text of a key, or its rule, a space and its
// text. It searches the hot keys, then the keys with a control, then the keys that rules can make.
// rules may be nil.
func findKeyToControl(words string, hot []published.Hot, controls []published.Control, ruleset *rules.Rules) (foundKey, error) {
	words = strings.TrimSpace(words)
	if rule, text, ok := strings.Cut(words, " "); ok && rules.ValidRuleID(rule) { // list pads the rule with spaces
		words = rule + " " + strings.TrimLeft(text, " ")
	}
	if i := strings.LastIndexByte(words, '?'); i >= 0 && strings.Contains(words[i:], "*") {
		return foundKey{}, fmt.Errorf("%q is a pattern: KEY is one key; an exception in the rules file (except) can have patterns. A * in a value is written %%2A", words)
	}
	var inHot, inControls []rules.Key
	for i := range hot {
		inHot = append(inHot, hot[i].Key)
	}
	for i := range controls {
		inControls = append(inControls, controls[i].Key)
	}
	for _, keys := range [][]rules.Key{inHot, inControls} {
		means := func(k rules.Key) bool { return k.Text == words || k.String() == words }
		key, err := onlyOne(words, slices.DeleteFunc(slices.Clone(keys), func(k rules.Key) bool { return !means(k) }))
		if err != nil {
			return foundKey{}, err
		}
		if key != nil {
			return foundKey{*key, true, isUnlimited(*key, hot, ruleset)}, nil
		}
	}
	key, err := unseenKey(words, ruleset)
	if err != nil {
		return foundKey{}, err
	}
	return foundKey{*key, false, isUnlimited(*key, hot, ruleset)}, nil
}

// onlyOne returns the only element of keys, or nil if keys is empty.
func onlyOne(words string, keys []rules.Key) (*rules.Key, error) {
	switch len(keys) {
	case 0:
		return nil, nil
	case 1:
		return &keys[0], nil
	}
	slices.SortFunc(keys, func(a, b rules.Key) int { return cmp.Compare(a.Rule, b.Rule) })
	var b strings.Builder
	fmt.Fprintf(&b, "%q is a key of %d rules: say which", words, len(keys))
	for _, k := range keys {
		fmt.Fprintf(&b, "\n  '%s'", k)
	}
	return nil, errors.New(b.String())
}

// errUnseen means that the key is neither hot nor controlled, and nothing shows its rule.
var errUnseen = errors.New("the key is neither hot nor has a control")

// unseenKey returns a key that is neither hot nor controlled.
func unseenKey(words string, ruleset *rules.Rules) (*rules.Key, error) {
	if key, ok := rules.ParseKey(words); ok && rules.ValidRuleID(key.Rule) {
		if ruleset != nil && ruleByID(ruleset, key.Rule) == nil {
			return nil, fmt.Errorf("the file has no rule %q", key.Rule)
		}
		return &key, nil
	}
	if ruleset == nil {
		return nil, fmt.Errorf("%q: %w: put its rule before it (RULE KEY), or give --config FILE with the rules", words, errUnseen)
	}
	var keys []rules.Key
	for i := range ruleset.Rules {
		if makesKey(&ruleset.Rules[i], words) {
			keys = append(keys, rules.Key{Rule: ruleset.Rules[i].ID, Text: words})
		}
	}
	key, err := onlyOne(words, keys)
	if err == nil && key == nil {
		err = fmt.Errorf("%q is not hot, has no control, and no rule of the file makes such a key: hotparam rules explain says which keys a request makes", words)
	}
	return key, err
}

// makesKey reports whether a rule may make keys of this text. Each name in the text must be one of
// the rule's, and its route must be one that the rule matches, unless the rule's keys have no route.
// It may return true for a text that no request makes.
func makesKey(r *rules.Rule, text string) bool {
	if r.By.Kind == rules.ByNone || r.Ignore {
		return false
	}
	route, params, _ := strings.Cut(text, "?")
	if r.ParamsOnly {
		params = text
	} else if method, path, ok := strings.Cut(route, " "); ok {
		pattern, err := rules.ParseRoute(path) // a key has the pattern of the program's router, or of the rule
		if !r.Match.Route.IsAny() && !r.Match.Route.SamePattern(method, path) && (err != nil || !r.Match.Route.MayMatch(method, pattern)) {
			return false
		}
	} else if !r.Match.Route.Resource(route) {
		return false
	}
	// A body that cannot be read makes a key of its own, such as form:~unread.
	if source, _, ok := strings.Cut(params, ":~unread"); ok && base.IsReservedParams(params) {
		return r.DependsOnBody() && slices.ContainsFunc(r.Named(), func(p rules.Param) bool { return p.Source.String() == source })
	}
	if len(r.By.Names) == 0 || params == "" || base.IsReservedParams(params) {
		return true
	}
	for part := range strings.SplitSeq(params, "&") {
		name, _, _ := strings.Cut(part, "=")
		if !slices.ContainsFunc(r.By.Names, func(p rules.Param) bool { return nameInKey(p) == name }) {
			return false
		}
	}
	return true
}

// nameInKey returns a parameter's name as written in keys: with its source, and escaped.
func nameInKey(p rules.Param) string {
	return strings.TrimSuffix(rules.Text("", rules.Param{Source: p.Source, Name: p.Name})[1:], "=")
}

// isUnlimited reports whether a key's rule is known to have no limit with a number.
func isUnlimited(key rules.Key, hot []published.Hot, ruleset *rules.Rules) bool {
	if ruleset != nil {
		r := ruleByID(ruleset, key.Rule)
		return r != nil && !r.Limit.HasNumber()
	}
	return slices.ContainsFunc(hot, func(h published.Hot) bool { return h.Rule == key.Rule && h.Mode == rules.ModeWatch })
}
