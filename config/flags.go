package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hotparam/hotparam/rules"
)

// FromFlags makes rules from three flags, for commands that work without a file: one rule
// "replay" for every request, in namespace "replay". params is "all" (also when empty), "each",
// "combinations", or names separated by commas. hot is a threshold in one word as in a file,
// "200/s", "20%" or "8x/1m", with the default exit and hold. limit is a rate, whose count is
// also the burst, or empty. Errors name the flag.
func FromFlags(params, hot, limit string) (*rules.Rules, error) {
	if hot == "" {
		return nil, errors.New("--hot is missing, for example --hot 200/s")
	}
	threshold, reason := parseTerms(hot, rules.Requests)
	if reason != "" {
		return nil, fmt.Errorf("--hot %s: %s", quote(hot), reason)
	}
	withLeast(&threshold)
	route, err := rules.ParseRoute("*")
	if err != nil {
		return nil, err
	}
	rule := rules.Rule{ID: "replay", Match: rules.Match{Route: route}, Hot: []rules.Threshold{threshold.WithDefaults()}}
	if rule.By, err = byFlag(params, route); err != nil {
		return nil, err
	}
	if limit != "" {
		rate, err := rules.ParseRate(limit)
		if err != nil {
			return nil, fmt.Errorf("--limit %s: %w", quote(limit), errors.Unwrap(err))
		}
		rule.Limit = &rules.Limit{Quota: rules.Quota{Rate: rate}.WithDefaults(), Mode: rules.ModeLimit}
	}
	ruleset := &rules.Rules{
		Namespace: "replay",
		Rules:     []rules.Rule{rule},
	}
	ruleset.Version = (&File{Rules: ruleset}).version()
	var bad *rules.FieldError
	if errors.As(ruleset.Validate(), &bad) {
		return nil, flagError(bad, params, hot, limit)
	}
	return ruleset, nil
}

// flagError names the flag from which a field of the rule was read.
func flagError(bad *rules.FieldError, params, hot, limit string) error {
	_, field, _ := strings.Cut(bad.Field, ".")
	switch name, i := cutIndex(field); name {
	case "hot":
		return errors.New(bad.Text("--hot", quote(hot), ""))
	case "by":
		s := params
		if names := strings.Split(params, ","); i >= 0 && i < len(names) {
			s = strings.TrimSpace(names[i])
		}
		return fmt.Errorf("%s (%s)", bad.Text("--by", quote(s), ""), bad.Hint)
	}
	return fmt.Errorf("--limit %s: %s", quote(limit), bad.Text(field, "", ""))
}

func byFlag(params string, route rules.Route) (rules.By, error) {
	if params == "" {
		params = "all"
	}
	if kind, found := byWords[params]; found {
		return rules.By{Kind: kind}, nil
	}
	var names []rules.Param
	for s := range strings.SplitSeq(params, ",") {
		s = strings.TrimSpace(s)
		p, bad := parseName(s, route)
		if bad != nil {
			return rules.By{}, fmt.Errorf("--by %s: %s (%s)", quote(s), bad.message, bad.hint)
		}
		names = append(names, p)
	}
	return rules.By{Kind: rules.ByNames, Names: names}, nil
}
