package rules

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestExceptionMatchesText(t *testing.T) {
	for _, test := range []struct {
		text   string
		values []QueryMatch
		want   bool
	}{
		{"GET /search?q=phone", []QueryMatch{{"q", "phone"}}, true},
		{"q=phone", []QueryMatch{{"q", "phone"}}, true},
		{"b=2&q=phone", []QueryMatch{{"q", "phone"}, {"b", "*"}}, true},
		{"b=2&q=phone", []QueryMatch{{"q", "phone"}, {"c", "*"}}, false},
		{"q=a&q=b", []QueryMatch{{"q", "b"}}, true},
		{"q=phone", []QueryMatch{{"q", "phon"}}, false},
		{"q=phone", []QueryMatch{{"q", "phones"}}, false},
		{"q=phone", []QueryMatch{{"query:q", "ph*e"}}, true},
		{"q=", []QueryMatch{{"q", ""}}, true},
		{"q=", []QueryMatch{{"q", "**"}}, true},
		{"GET /search", []QueryMatch{{"q", "*"}}, false},
		{"GET /u/{id}?path:id=7&q=1", []QueryMatch{{"path:id", "7"}}, true},
		{"GET /u/{id}?path:id=7&q=1", []QueryMatch{{"id", "7"}}, false},
		{"GET /u/{id}?id=7", []QueryMatch{{"path:id", "7"}}, false},
		{"a%3Ab=1", []QueryMatch{{"a:b", "1"}}, true},
		{"what?q=1", []QueryMatch{{"q", "1"}}, true},
		{"what??q=1", []QueryMatch{{"q", "1"}}, true},
		{"q=%C3%A4", []QueryMatch{{"q", "ä"}}, true},
		{"q=%C3%A4x", []QueryMatch{{"q", "*x"}}, true},
		{"q=%2A", []QueryMatch{{"q", "*"}}, true},
		{"%2A=1", []QueryMatch{{"*", "1"}}, true}, // a star in a name is one
		{"abc=1", []QueryMatch{{"a*", "1"}}, false},
		{"q=abcabd", []QueryMatch{{"q", "*ab*d"}}, true},
		{"q=abcabc", []QueryMatch{{"q", "*ab*d"}}, false},
		{"q=1", nil, false},
	} {
		x := Exception{Values: test.values}
		if got := x.MatchesText(test.text); got != test.want {
			t.Errorf("%v matches %q: %v, want %v", test.values, test.text, got, test.want)
		}
	}
}

// An exception's values match canonical text exactly if they match the parameters that it was made
// from.
func TestExceptionAgreesWithTheParameters(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "b", "*", "%", "&", "=", "?", ":", " ", "ä", "~"})
	word := rapid.Map(rapid.SliceOfN(piece, 0, 5), func(p []string) string { return strings.Join(p, "") })
	rapid.Check(t, func(t *rapid.T) {
		param := rapid.Custom(func(t *rapid.T) Param {
			return Param{rapid.SampledFrom([]Source{Query, Path}).Draw(t, "source"), word.Draw(t, "name"), word.Draw(t, "value")}
		})
		params := rapid.SliceOfN(param, 0, 4).Draw(t, "params")
		want := param.Draw(t, "want")
		if len(params) > 0 && rapid.Bool().Draw(t, "present") {
			want.Source, want.Name = params[0].Source, params[0].Name
		}
		pattern := regexp.MustCompile("(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(want.Value), `\*`, ".*") + "$")
		has := false
		for _, p := range params {
			has = has || p.Source == want.Source && p.Name == want.Name && pattern.MatchString(p.Value)
		}
		source := want.Source.String()
		if want.Source == Query {
			source = "query"
		}
		x := Exception{Values: []QueryMatch{{source + ":" + want.Name, want.Value}}}
		if text := Text("GET /r", params...); x.MatchesText(text) != has {
			t.Fatalf("%+v matches %q: %v, want %v", x.Values, text, !has, has)
		}
	})
}

func TestTheFirstExceptionCounts(t *testing.T) {
	r := Rule{Except: []Exception{
		{Values: []QueryMatch{{"q", "phone"}}},
		{Values: []QueryMatch{{"q", "*"}}},
	}}
	for text, want := range map[string]*Exception{"q=phone": &r.Except[0], "q=tv": &r.Except[1], "b=1": nil} {
		if got := r.Exception(text); got != want {
			t.Errorf("the exception of %q is %+v", text, got)
		}
	}
	if n := testing.AllocsPerRun(100, func() { r.Exception("GET /search?b=2&q=%C3%A4") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
