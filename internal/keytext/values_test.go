package keytext

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// firstValues returns the documented choice of a request's parameters, all of them different and
// sorted. Values are chosen in rounds, one value of each name in a round. The first round takes as
// many names as are allowed, and later rounds fill up to eight values.
func firstValues(params []rules.Param, names int) []rules.Param {
	var rounds [][]rules.Param
	for i, q := range params {
		number := 0
		for _, earlier := range params[:i] {
			if earlier.Name == q.Name {
				number++
			}
		}
		for len(rounds) <= number {
			rounds = append(rounds, nil)
		}
		rounds[number] = append(rounds[number], q)
	}
	var chosen []rules.Param
	for number, round := range rounds {
		most := 8
		if number == 0 {
			most = max(most, names)
		}
		for _, q := range round {
			if len(chosen) < most {
				chosen = append(chosen, q)
			}
		}
	}
	slices.SortFunc(chosen, func(a, b rules.Param) int { return slices.Index(params, a) - slices.Index(params, b) })
	return chosen
}

// repeating draws parameters of few names and values.
func repeating() *rapid.Generator[[]rules.Param] {
	param := rapid.Custom(func(t *rapid.T) rules.Param {
		return rules.Param{
			Source: rapid.SampledFrom([]rules.Source{rules.Query, rules.Query, rules.Path}).Draw(t, "source"),
			Name:   rapid.SampledFrom([]string{"a", "b", "q", "a&b", "token", ""}).Draw(t, "name"),
			Value:  rapid.SampledFrom([]string{"1", "2", "3", "4", "", "~more", "=", "é"}).Draw(t, "value"),
		}
	})
	return rapid.OneOf(rapid.SliceOfN(param, 0, 6), rapid.SliceOfN(param, 10, 40), rapid.SliceOfN(param, 30, 60))
}

func sortedParams(params []rules.Param) *Params {
	var p Params
	for _, q := range params {
		p.Add(q)
	}
	p.Sort()
	return &p
}

func distinctOf(p *Params) (distinct []rules.Param) {
	for i := range p.Len() {
		if q := p.At(i); !slices.Contains(distinct, q) {
			distinct = append(distinct, q)
		}
	}
	return distinct
}

func TestSinglesAreTheFirstValuesOfEachName(t *testing.T) {
	more, hidden := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		p := sortedParams(repeating().Draw(t, "params"))
		var names []rules.Param
		if rapid.Bool().Draw(t, "named") {
			names = []rules.Param{{Name: "a"}, {Source: rules.Path, Name: "a"}, {Name: "token"}}
		}
		s := p.Combine(&rules.By{Kind: rules.ByEach, Names: names}, &rules.Secrets{})
		wantHidden := 0
		for i := range p.Len() {
			if names == nil && p.At(i).Name == "token" {
				wantHidden++
			}
		}
		all := slices.DeleteFunc(distinctOf(p), func(q rules.Param) bool {
			if names != nil {
				return !slices.Contains(names, rules.Param{Source: q.Source, Name: q.Name})
			}
			return q.Name == "token"
		})
		want := firstValues(all, 8)
		var got []string
		for set := s.Next(0); set != 0; set = s.Next(set) {
			got = append(got, string(p.AppendCombination(nil, &s, set)))
		}
		if texts := textsOf(want); !slices.Equal(got, texts) || s.More != (len(want) < len(all)) || s.Hidden != wantHidden {
			t.Fatalf("%q, more %v, %d hidden; want %q of %d, %d hidden", got, s.More, s.Hidden, texts, len(all), wantHidden)
		}
		if s.More {
			more++
		}
		hidden += s.Hidden
	})
	if !testing.Short() && (more == 0 || hidden == 0) {
		t.Errorf("%d had more, %d were hidden: the test tests too little", more, hidden)
	}
}

func textsOf(params []rules.Param) (texts []string) {
	for _, q := range params {
		texts = append(texts, strings.TrimPrefix(rules.Text("", q), "?"))
	}
	return texts
}

// The pairings that two requests have in common come in the same order in both, so requests that
// wait for permits of several keys cannot wait for each other.
func TestPairingsAreTheFirstOfAll(t *testing.T) {
	several, more := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		p := sortedParams(repeating().Draw(t, "params"))
		names := rapid.SampledFrom([][]rules.Param{
			{{Name: "q"}}, {{Name: "a"}, {Name: "b"}}, {{Name: "q"}, {Source: rules.Path, Name: "a"}, {Name: "a"}}, {{Name: "none"}},
			{{Name: "b"}, {Name: "none"}, {Name: "a"}, {Name: "token"}, {Name: "q"}},
		}).Draw(t, "names")
		all := [][]rules.Param{nil}
		for _, name := range names {
			var longer [][]rules.Param
			for _, set := range all {
				for _, q := range distinctOf(p) {
					if q.Name == name.Name && q.Source == name.Source {
						longer = append(longer, append(slices.Clone(set), q))
					}
				}
			}
			if longer != nil {
				all = longer
			}
		}
		if all[0] == nil {
			all = nil
		}
		var want []string
		for _, set := range all[:min(len(all), 8)] {
			want = append(want, strings.TrimPrefix(rules.Text("", set...), "?"))
		}
		pairs := p.Pair(names)
		var got []string
		for i := range pairs.Len() {
			got = append(got, string(p.AppendPairing(nil, i)))
		}
		if !slices.Equal(got, want) || pairs.More != (len(all) > 8) {
			t.Fatalf("%q, more %v; want %q of %d", got, pairs.More, want, len(all))
		}
		one, n, ok := p.AppendNamed(nil, names)
		if ok && (len(all) > 1 || n > 0 && string(one) != want[0] || n == 0 && len(all) > 0) {
			t.Fatalf("one key %q of %q", one, want)
		}
		if !ok {
			several++
		}
		if pairs.More {
			more++
		}
	})
	if !testing.Short() && (several == 0 || more == 0) {
		t.Errorf("%d made several keys, %d more than eight: the test tests too little", several, more)
	}
}

// The cost of a hostile query is proportional to its length. Later queries allocate nothing.
func TestValuesOfAHostileQuery(t *testing.T) {
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, "q=%d&a%d=1&", i, i)
	}
	var p Params
	p.AddQuery(b.String())
	p.Sort()
	names := []rules.Param{{Name: "q"}, {Name: "a1"}}
	var buf []byte
	run := func() {
		buf = buf[:0]
		s := p.Combine(&rules.By{Kind: rules.ByEach}, &rules.Secrets{})
		c := p.Combine(&rules.By{Kind: rules.ByCombinations}, &rules.Secrets{})
		pairs := p.Pair(names)
		buf = p.AppendCombination(buf, &s, 1<<7)
		buf = p.AppendCombination(buf, &c, 1)
		buf = p.AppendPairing(buf, 7)
		if !s.More || s.Len() != 8 || !c.More || c.Len() != 28 || !pairs.More || pairs.Len() != 8 {
			t.Fatalf("%+v %+v %+v", s, c, pairs)
		}
	}
	run()
	if n := testing.AllocsPerRun(5, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// No parameter, with any name and value, makes a reserved text.
func TestNoRequestSpellsAReservedText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.OneOf(rapid.SampledFrom([]string{"~more", "~again", "~again&q", "?~more", "", "*", "="}), rapid.String())
		raw := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			return word.Draw(t, "name") + rapid.SampledFrom([]string{"", "="}).Draw(t, "equals") + word.Draw(t, "value")
		}), 1, 4).Draw(t, "params")
		path := rapid.SampledFrom([]string{"/s", "/~more", "/?~more", "/%3F~more", "/~again&q"}).Draw(t, "path")
		for _, head := range []string{"", "GET " + string(base.AppendPath(nil, path)) + "?"} {
			text := []byte(head + canonicalQuery(strings.Join(raw, "&")))
			if len(text) > len(head) && base.IsReservedParams(string(text[len(head):])) {
				t.Fatalf("%q", text)
			}
		}
	})
}

// No request's text equals a total's.
func TestNoParameterSpellsATotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := rules.Param{Name: rapid.SampledFrom([]string{"*", "", "?*", "a"}).Draw(t, "name"), Value: rapid.SampledFrom([]string{"*", "", "?*"}).Draw(t, "value")}
		var p Params
		p.Add(q)
		for _, text := range []string{string(p.AppendOne(nil, 0)), rules.Text("GET /s", q)} {
			if base.IsTotal([]byte(text)) {
				t.Fatalf("%q of %+v", text, q)
			}
		}
	})
}
