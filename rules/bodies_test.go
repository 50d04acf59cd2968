package rules

import "testing"

func TestUnreadHasNames(t *testing.T) {
	for u, want := range []string{"limit", "pass", "reject", "invalid"} {
		if got := Unread(u).String(); got != want {
			t.Errorf("%d is %q, want %q", u, got, want)
		}
	}
}

func TestBodiesHaveDefaults(t *testing.T) {
	for _, test := range []struct{ given, want Bodies }{
		{Bodies{}, Bodies{64 << 10, 64 << 20}},
		{Bodies{Max: 1}, Bodies{1, 64 << 20}},
		{Bodies{Total: 1 << 20}, Bodies{64 << 10, 1 << 20}},
		{Bodies{Max: maxBody}, Bodies{maxBody, maxBody}},
	} {
		if got := test.given.WithDefaults(); got != test.want {
			t.Errorf("%+v: %+v, want %+v", test.given, got, test.want)
		}
	}
}

func TestRulesThatDependOnBodies(t *testing.T) {
	byName := func(p Param) Rule { return Rule{By: By{Kind: ByNames, Names: []Param{{Name: "q"}, p}}} }
	for _, test := range []struct {
		rule Rule
		want bool
	}{
		{byName(Param{Source: Form, Name: "user"}), true},
		{byName(Param{Source: JSON, Name: "user"}), true},
		{byName(Param{Source: Header, Name: "user"}), false},
		{Rule{Match: Match{Query: []QueryMatch{{"json:op", "login"}}}}, true},
		{Rule{Match: Match{Query: []QueryMatch{{"op", "login"}}}}, false},
		{Rule{Limit: &Limit{Priority: &Priority{Source: Form, Name: "plan"}}}, false}, // which decides on a class alone
	} {
		if got := test.rule.DependsOnBody(); got != test.want {
			t.Errorf("%+v: %v", test.rule, got)
		}
	}
}
