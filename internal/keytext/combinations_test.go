package keytext

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

// combinations returns the texts of all combinations.
func combinations(p *Params, names []rules.Param, secrets *rules.Secrets) (texts []string) {
	c := p.Combine(&rules.By{Kind: rules.ByCombinations, Names: names}, secrets)
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
		{"a=1&a=2&a=3&a=4&a=5&a=6&a=7&a=8&a=9&q=1", "", "a=1 a=2 a=3 a=4 a=5 a=6 a=7 q=1"},
		{"c=3&b=2&a=1", "", "a=1 b=2 c=3 a=1&b=2 a=1&c=3 b=2&c=3 a=1&b=2&c=3"},
		{"e=5&d=4&c=3&b=2&a=1", "", "a=1 b=2 c=3 d=4 e=5 " +
			"a=1&b=2 a=1&c=3 b=2&c=3 a=1&d=4 b=2&d=4 c=3&d=4 a=1&e=5 b=2&e=5 c=3&e=5 d=4&e=5 " +
			"a=1&b=2&c=3 a=1&b=2&d=4 a=1&c=3&d=4 b=2&c=3&d=4 a=1&b=2&e=5 a=1&c=3&e=5 b=2&c=3&e=5 a=1&d=4&e=5 b=2&d=4&e=5 c=3&d=4&e=5"},
		{"a&b&c&d&q=1&token=5", "a q", "a= q=1 a=&q=1"},
		{"a&b&c&d&e&f&g&q=1", "", "a= b= c= d= e= f= g= q=1"},
		{"e=5&d=4&c=3&b=2&a=1", "e b", "b=2 e=5 b=2&e=5"},
		{"a=1", "e b", ""},
	} {
		var p Params
		p.AddQuery(test.query)
		p.Sort()
		var names []rules.Param
		for _, name := range strings.Fields(test.names) {
			names = append(names, rules.Param{Name: name})
		}
		if got := strings.Join(combinations(&p, names, &rules.Secrets{}), " "); got != test.want {
			t.Errorf("%q by %q: %q, want %q", test.query, test.names, got, test.want)
		}
	}
}

// Levels of an address are alternatives: no key has two of them.
func TestCombinationsHaveOneLevel(t *testing.T) {
	var p Params
	for _, q := range []rules.Param{{Source: rules.Addr, Name: "ip", Value: "192.0.2.7"}, {Source: rules.Addr, Name: "v4/24", Value: "192.0.2.0/24"}, {Source: rules.Addr, Name: "v4/16", Value: "192.0.0.0/16"}, {Source: rules.Query, Name: "q", Value: "1"}} {
		p.AddNamed(q)
	}
	p.Sort()
	names := []rules.Param{{Source: rules.Addr, Name: "ip"}, {Source: rules.Addr, Name: "v4/24"}, {Source: rules.Addr, Name: "v4/16"}, {Name: "q"}}
	const want = "addr:ip=192.0.2.7 q=1 addr:v4%2F16=192.0.0.0%2F16 addr:v4%2F24=192.0.2.0%2F24 " +
		"addr:ip=192.0.2.7&q=1 q=1&addr:v4%2F16=192.0.0.0%2F16 q=1&addr:v4%2F24=192.0.2.0%2F24"
	if got := strings.Join(combinations(&p, names, &rules.Secrets{}), " "); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// The combinations are the distinct subsets of the parameters, ordered by size, up to the largest
// size that fits. The text of each is the text of its parameters alone.
func TestCombinationsAreTheSubsets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		params := rapid.SliceOfN(anyNamed(), 0, 9).Draw(t, "params")
		for i := range rapid.SampledFrom([]int{0, 0, 0, 20, 30}).Draw(t, "more") {
			params = append(params, rules.Param{Name: fmt.Sprint("p", i)})
		}
		var p Params
		for _, q := range params {
			p.Add(q)
		}
		p.Sort()
		var all []rules.Param // the combined parameters
		for i := range p.Len() {
			if q := p.At(i); !slices.Contains(all, q) && !(&rules.Secrets{}).Hides(q.Name) {
				all = append(all, q)
			}
		}
		distinct := len(all)
		all = firstValues(all, 28)
		subsets := [][][]rules.Param{{nil}} // by size
		for _, q := range all {
			for size := min(3, len(subsets)); size > 0; size-- {
				if size == len(subsets) {
					subsets = append(subsets, nil)
				}
				for _, set := range subsets[size-1] {
					subsets[size] = append(subsets[size], append(slices.Clip(set), q))
				}
			}
		}
		want, before := map[string]bool{}, 0
		for _, sets := range subsets[1:] {
			if len(want)+len(sets) > 28 {
				break
			}
			for _, set := range sets {
				want[strings.TrimPrefix(rules.Text("", set...), "?")] = true
			}
		}
		if c := p.Combine(&rules.By{Kind: rules.ByCombinations}, &rules.Secrets{}); c.More != (len(all) < distinct) {
			t.Fatalf("%d of %d are combined: more is %v", len(all), distinct, c.More)
		}
		got := combinations(&p, nil, &rules.Secrets{})
		for _, text := range got {
			size := strings.Count(text, "&")
			if size < before {
				t.Fatalf("%q comes after longer ones: %q", text, got)
			}
			before = size
		}
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
			t.Fatalf("%q, want %q", got, slices.Sorted(maps.Keys(want)))
		}
	})
}
