package hotparam

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// combinations are the texts of all combinations.
func combinations(p *Params, names []Param, secrets *Secrets) (texts []string) {
	c := p.Combine(names, secrets)
	for set := c.Next(0); set != 0; set = c.Next(set) {
		texts = append(texts, string(p.AppendCombination(nil, &c, set)))
	}
	return texts
}

func TestCombinations(t *testing.T) {
	for _, test := range []struct {
		query, names string
		want         string
	}{
		{"", "", ""},
		{"q=1", "", "q=1"},
		{"q=1&b=2", "", "b=2 q=1 b=2&q=1"},
		{"q=1&b=2&token=3", "", "b=2 q=1 b=2&q=1"},
		{"q=1&q=1&b=2", "", "b=2 q=1 b=2&q=1"},
		{"q=2&q=1", "", "q=1 q=2 q=1&q=2"},
		{"c=3&b=2&a=1", "", "a=1 b=2 a=1&b=2 c=3 a=1&c=3 b=2&c=3 a=1&b=2&c=3"},
		{"e=5&d=4&c=3&b=2&a=1", "", "a=1 b=2 a=1&b=2 c=3 a=1&c=3 b=2&c=3 a=1&b=2&c=3 " +
			"d=4 a=1&d=4 b=2&d=4 a=1&b=2&d=4 c=3&d=4 a=1&c=3&d=4 b=2&c=3&d=4"},
		{"e=5&d=4&c=3&b=2&a=1", "e b", "b=2 e=5 b=2&e=5"},
		{"a=1", "e b", ""},
	} {
		var p Params
		p.AddQuery(test.query)
		p.Sort()
		var names []Param
		for _, name := range strings.Fields(test.names) {
			names = append(names, Param{Name: name})
		}
		if got := strings.Join(combinations(&p, names, &Secrets{}), " "); got != test.want {
			t.Errorf("%q by %q: %q, want %q", test.query, test.names, got, test.want)
		}
	}
}

// The combinations are the subsets of the first parameters, none twice, and each
// is a text that its parameters alone have.
func TestCombinationsAreTheSubsets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		params := rapid.SliceOfN(anyParam(), 0, 7).Draw(t, "params")
		var p Params
		for _, q := range params {
			p.Add(q)
		}
		p.Sort()
		var first []Param // that are combined
		for i := range p.Len() {
			if q := p.At(i); !slices.Contains(first, q) && !(&Secrets{}).Hides(q.Name) && len(first) < MaxCombined {
				first = append(first, q)
			}
		}
		want := map[string]bool{}
		var pick func(from int, set []Param)
		pick = func(from int, set []Param) {
			if len(set) > 0 {
				want[strings.TrimPrefix(Text("", set...), "?")] = true
			}
			if len(set) == MaxCombination {
				return
			}
			for i := from; i < len(first); i++ {
				pick(i+1, append(slices.Clip(set), first[i]))
			}
		}
		pick(0, nil)
		got := combinations(&p, nil, &Secrets{})
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
			t.Fatalf("%q, want %q", got, slices.Sorted(maps.Keys(want)))
		}
	})
}
