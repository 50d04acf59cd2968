package hotparam

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// plainOrNot is a query that mostly needs no decoding.
func plainOrNot() *rapid.Generator[string] {
	word := rapid.SampledFrom([]string{"", "a", "b", "a-", "a~", "ab", "token", "x.token", "1", "22", "Z", "%41", "+", "a=b"})
	return rapid.Custom(func(t *rapid.T) string {
		var params []string
		for range rapid.IntRange(0, 10).Draw(t, "params") {
			p := word.Draw(t, "name") + "=" + word.Draw(t, "value")
			params = append(params, rapid.SampledFrom([]string{p, p, p, p, p, p, word.Draw(t, "alone")}).Draw(t, "param"))
		}
		return strings.Join(params, "&")
	})
}

// What AppendPlain writes is what Params writes of the same query.
func TestAppendPlainIsWhatParamsAppend(t *testing.T) {
	var secrets Secrets
	plain := 0
	check := func(t *rapid.T, raw string) {
		names := rapid.SampledFrom([][]Param{
			nil, {{Name: "a"}}, {{Name: "b"}, {Name: "a"}, {Name: "token"}}, {{Source: Path, Name: "a"}, {Name: "ab"}}, {{Name: ""}},
		}).Draw(t, "names")
		var p Params
		p.AddQuery(raw)
		p.Sort()
		want, count, single := p.AppendNamed([]byte("head?"), names)
		wantHidden := 0
		if names == nil {
			want, count = p.AppendAll([]byte("head?"), &secrets)
			single, wantHidden = true, p.Len()-count
		}
		got, n, hidden, ok := AppendPlain([]byte("head?"), raw, names, &secrets)
		switch {
		case ok && !single:
			t.Fatalf("%q is %q, and makes several keys", raw, got)
		case ok && hidden != wantHidden:
			t.Fatalf("%q: %d are hidden, want %d", raw, hidden, wantHidden)
		case !ok && (n != 0 || string(got) != "head?"):
			t.Fatalf("%q was refused, and %q appended", raw, got)
		case ok && (n != count || string(got) != string(want)):
			t.Fatalf("%q is %d, %q, want %d, %q", raw, n, got, count, want)
		case ok:
			plain += n
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.OneOf(plainOrNot(), anyBytes()).Draw(t, "raw"))
		check(t, plainOrNot().Draw(t, "plain or not"))
	})
	if plain == 0 && !testing.Short() {
		t.Error("no query was plain: the test tests nothing")
	}
}

func TestAppendPlainTakesWhatIsPlain(t *testing.T) {
	eight := "h=8&g=7&f=6&e=5&d=4&c=3&b=2&a=1"
	for raw, want := range map[string]bool{
		"": true, strings.Repeat("q", 31) + "=" + strings.Repeat("1", 32): true, strings.Repeat("q", 32) + "=" + strings.Repeat("1", 32): false,
		"q=1": true, "q=1&b=2": true, "q=1&": true, "q=": true, "=": true, eight: true, "token=1&" + eight: true,
		"i=9&" + eight: false, "q": false, "q&b=1": false, "&q=1": false, "q=1&&b=2": false, "q=a+b": false, "q=%41": false, "q=a=b": false, "q=é": false, "q;=1": false,
	} {
		if _, _, _, ok := AppendPlain(nil, raw, nil, &Secrets{}); ok != want {
			t.Errorf("%q: plain is %v", raw, ok)
		}
	}
	dst := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() { AppendPlain(dst, eight, nil, &Secrets{}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Whatever the bytes around it, each byte is told from the unreserved ones.
func TestSeparators(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOfN(rapid.Byte(), 0, maxPlainQuery).Draw(t, "s"))
		marks := separators(s)
		for i := range len(s) {
			if (marks>>i&1 == 0) != unreserved[s[i]] {
				t.Fatalf("%q: byte %d, %q, is wrong", s, i, s[i])
			}
		}
		if len(s) < 64 && marks>>len(s) != 0 {
			t.Fatalf("%q: %b", s, marks)
		}
	})
	for c := range 256 {
		for at := range 9 {
			s := []byte("012345678")
			s[at] = byte(c)
			if (separators(string(s)) == 0) != unreserved[c] {
				t.Errorf("byte %#x at %d is wrong", c, at)
			}
		}
	}
}
