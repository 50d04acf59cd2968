package keytext

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// plainOrNot generates queries that mostly need no decoding.
func plainOrNot() *rapid.Generator[string] {
	word := rapid.SampledFrom([]string{"", "a", "b", "a-", "a~", "ab", "token", "x.token", "1", "22", "Z", "%41", "+", "a=b"})
	value := rapid.OneOf(word, rapid.SampledFrom([]string{"%c3%A9", "%2", "%", "%zz", "é", "%26%3d", "%25", "a+%2B", "%7e%7E"}))
	return rapid.Custom(func(t *rapid.T) string {
		var params []string
		for range rapid.IntRange(0, 10).Draw(t, "params") {
			p := word.Draw(t, "name") + "=" + value.Draw(t, "value")
			params = append(params, rapid.SampledFrom([]string{p, p, p, p, p, p, word.Draw(t, "alone")}).Draw(t, "param"))
		}
		return strings.Join(params, "&")
	})
}

// AppendPlain writes the same text as Params for the same query.
func TestAppendPlainIsWhatParamsAppend(t *testing.T) {
	var secrets rules.Secrets
	plain := 0
	check := func(t *rapid.T, raw string) {
		names := rapid.SampledFrom([][]rules.Param{
			nil, {{Name: "a"}}, {{Name: "b"}, {Name: "a"}, {Name: "token"}}, {{Source: rules.Path, Name: "a"}, {Name: "ab"}}, {{Name: ""}},
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
		dst := append(make([]byte, 0, 5+rapid.IntRange(0, 64).Draw(t, "room")), "head?"...)
		got, n, hidden, ok := AppendPlain(dst, raw, names, &secrets)
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
		check(t, rapid.OneOf(plainOrNot(), anyText()).Draw(t, "raw"))
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
		"i=9&" + eight: false, "q": false, "q&b=1": false, "&q=1": false, "q=1&&b=2": false, "q;=1": false,
		"q=a+b": true, "q=%41": true, "q=a=b": false, "q=a%3Db": false, "q=a@b": false, "q=a%40": false, "q=%2541": false, "q=é": true, "q=%": true, "q%41=1": false, "q+=1": false, "é=1": false,
		"q=1&q=2": true, "q=1&q=%32": false, "q=+&q=1": false, "q=+&b=%": true,
	} {
		if _, _, _, ok := AppendPlain(make([]byte, 0, 100), raw, nil, &rules.Secrets{}); ok != want {
			t.Errorf("%q: plain is %v", raw, ok)
		}
	}
	if _, _, _, ok := AppendPlain(make([]byte, 3, 3+len("b=%20&q=1")-1), "q=1&b=+", nil, &rules.Secrets{}); ok {
		t.Error("it writes beyond the room that there is")
	}
	dst := make([]byte, 0, 64)
	for _, raw := range []string{eight, "q=caf%C3%A9+1&b=%32", strings.Repeat("q=+&b=%", 9)} {
		if n := testing.AllocsPerRun(100, func() { AppendPlain(dst, raw, nil, &rules.Secrets{}) }); n != 0 {
			t.Errorf("%s: %v allocations", raw, n)
		}
	}
}

// separators marks exactly the bytes that are not unreserved, whatever bytes surround them.
func TestSeparators(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOfN(rapid.Byte(), 0, maxPlainQuery).Draw(t, "s"))
		marks := separators(s)
		for i := range len(s) {
			if (marks>>i&1 == 0) != base.Unreserved[s[i]] {
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
			if (separators(string(s)) == 0) != base.Unreserved[c] {
				t.Errorf("byte %#x at %d is wrong", c, at)
			}
		}
	}
}
