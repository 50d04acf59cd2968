package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hotparam/hotparam"
)

// FromFlags makes rules of three flags, for commands that work without a file:
// one rule "replay" for every request, in namespace "replay". by is "all" (also
// when empty), "each", "combinations", or names with commas between; hot is a
// threshold in one word as the file has it, "200/s", "20%" or "8x/1m", with the
// default exit and hold; limit is a rate, which is its burst too, or empty.
// Errors name the flag.
func FromFlags(by, hot, limit string) (*hotparam.Rules, error) {
	if hot == "" {
		return nil, errors.New("--hot is missing, for example --hot 200/s")
	}
	threshold, reason := parseTerms(hot, hotparam.Requests)
	if reason != "" {
		return nil, fmt.Errorf("--hot %s: %s", quote(hot), reason)
	}
	withLeast(&threshold)
	route, err := hotparam.ParseRoute("*")
	if err != nil {
		return nil, err
	}
	rule := hotparam.Rule{ID: "replay", Match: hotparam.Match{Route: route}, Hot: []hotparam.Threshold{threshold.WithDefaults()}}
	if rule.By, err = byFlag(by, route); err != nil {
		return nil, err
	}
	if limit != "" {
		rate, err := hotparam.ParseRate(limit)
		if err != nil {
			return nil, fmt.Errorf("--limit %s: %w", quote(limit), errors.Unwrap(err))
		}
		rule.Limit = &hotparam.Limit{Quota: hotparam.Quota{Rate: rate}.WithDefaults(), Mode: hotparam.ModeLimit}
	}
	rules := &hotparam.Rules{
		Namespace: "replay",
		Rules:     []hotparam.Rule{rule},
	}
	rules.Version = (&File{Rules: rules}).version()
	var bad *hotparam.FieldError
	if errors.As(rules.Validate(), &bad) {
		return nil, flagError(bad, by, hot, limit)
	}
	return rules, nil
}

// flagError names the flag that a field of the rule was read from.
func flagError(bad *hotparam.FieldError, by, hot, limit string) error {
	_, field, _ := strings.Cut(bad.Field, ".")
	switch name, i := cutIndex(field); name {
	case "hot":
		return errors.New(bad.Text("--hot", quote(hot), ""))
	case "by":
		s := by
		if names := strings.Split(by, ","); i >= 0 && i < len(names) {
			s = strings.TrimSpace(names[i])
		}
		return fmt.Errorf("%s (%s)", bad.Text("--by", quote(s), ""), bad.Hint)
	}
	return fmt.Errorf("--limit %s: %s", quote(limit), bad.Text(field, "", ""))
}

func byFlag(by string, route hotparam.Route) (hotparam.By, error) {
	if by == "" {
		by = "all"
	}
	if kind, found := byWords[by]; found {
		return hotparam.By{Kind: kind}, nil
	}
	var names []hotparam.Param
	for s := range strings.SplitSeq(by, ",") {
		s = strings.TrimSpace(s)
		p, bad := parseName(s, route)
		if bad != nil {
			return hotparam.By{}, fmt.Errorf("--by %s: %s (%s)", quote(s), bad.message, bad.hint)
		}
		names = append(names, p)
	}
	return hotparam.By{Kind: hotparam.ByNames, Names: names}, nil
}
