package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// anyBytes generates strings of bytes that are special in some syntax, and of any other bytes.
func anyBytes() *rapid.Generator[string] {
	special := rapid.SampledFrom([]byte("%%%&&==++;:/?#~aA09fF ._-\x00\x7f\xc3\xa9\xff|@,"))
	b := rapid.OneOf(special, rapid.Byte())
	return rapid.Map(rapid.SliceOfN(b, 0, 24), func(b []byte) string { return string(b) })
}

func anyParam() *rapid.Generator[Param] {
	part := rapid.OneOf(rapid.SampledFrom([]string{"", "a", "b", "=", "&", "a=b", "path:a"}), anyBytes())
	return rapid.Custom(func(t *rapid.T) Param {
		return Param{
			Source: rapid.SampledFrom([]Source{Query, Query, Path, Header, RPC}).Draw(t, "source"),
			Name:   part.Draw(t, "name"),
			Value:  part.Draw(t, "value"),
		}
	})
}

// canonicalOf returns the multiset as a string. It shares no code with the implementation.
func canonicalOf(params []Param) string {
	var all []string
	for _, p := range params {
		all = append(all, fmt.Sprintf("%d %q %q", p.Source, p.Name, p.Value))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func TestTextIsTheSameForEveryOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		params := rapid.SliceOfN(anyParam(), 0, 30).Draw(t, "params")
		shuffled := rapid.Permutation(params).Draw(t, "shuffled")
		if a, b := Text("GET /x", params...), Text("GET /x", shuffled...); a != b {
			t.Fatalf("%q and %q", a, b)
		}
	})
}

func TestTextIsTheSameOnlyForTheSameMultiset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(anyParam(), 0, 4).Draw(t, "a")
		b := rapid.SliceOfN(anyParam(), 0, 4).Draw(t, "b")
		if rapid.Bool().Draw(t, "related") { // one byte, one source or one parameter apart
			b = slices.Clone(a)
			if len(b) > 0 {
				switch i := rapid.IntRange(0, len(b)-1).Draw(t, "i"); rapid.IntRange(0, 3).Draw(t, "change") {
				case 0:
					b[i].Name, b[i].Value = b[i].Value, b[i].Name
				case 1:
					b[i].Name, b[i].Value = b[i].Name+"=", strings.TrimPrefix(b[i].Value, "=")
				case 2:
					b = append(b, b[i])
				case 3:
					b[i].Source, b[i].Name = Query, b[i].Source.String()+":"+b[i].Name
				}
			}
		}
		if same := canonicalOf(a) == canonicalOf(b); same != (Text("r", a...) == Text("r", b...)) {
			t.Fatalf("%q and %q: same is %v", Text("r", a...), Text("r", b...), same)
		}
	})
}

func TestTextHoldsOnlyWhatTheGrammarAllows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		params := rapid.SliceOfN(anyParam(), 1, 5).Draw(t, "params")
		for _, one := range strings.Split(strings.TrimPrefix(Text("", params...), "?"), "&") {
			if source, rest, ok := strings.Cut(one, ":"); ok {
				if s, known := ParseSource(source); !known || s == Query {
					t.Fatalf("%q: source %q", one, source)
				}
				one = rest
			}
			if strings.Count(one, "=") != 1 || strings.Trim(strings.ReplaceAll(one, "=", ""), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~%") != "" {
				t.Fatalf("%q", one)
			}
		}
	})
}
