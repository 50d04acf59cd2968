package keytext

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// anyText generates strings of bytes that are special in some syntax, and of any other bytes.
func anyText() *rapid.Generator[string] {
	special := rapid.SampledFrom([]byte("%%%&&==++;:/?#~aA09fF ._-\x00\x7f\xc3\xa9\xff|@,"))
	b := rapid.OneOf(special, rapid.Byte())
	return rapid.Map(rapid.SliceOfN(b, 0, 24), func(b []byte) string { return string(b) })
}

func anyNamed() *rapid.Generator[rules.Param] {
	part := rapid.OneOf(rapid.SampledFrom([]string{"", "a", "b", "=", "&", "a=b", "path:a"}), anyText())
	return rapid.Custom(func(t *rapid.T) rules.Param {
		return rules.Param{
			Source: rapid.SampledFrom([]rules.Source{rules.Query, rules.Query, rules.Path, rules.Header, rules.RPC}).Draw(t, "source"),
			Name:   part.Draw(t, "name"),
			Value:  part.Draw(t, "value"),
		}
	})
}

// canonicalQuery returns a raw query in canonical form.
func canonicalQuery(raw string) string {
	var p Params
	p.AddQuery(raw)
	p.Sort()
	return string(p.appendEach(nil))
}

// Text of package rules writes the same.
func TestTextIsThatOfParams(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		params := rapid.SliceOfN(anyNamed(), 0, 30).Draw(t, "params")
		var p Params
		for _, q := range params {
			p.Add(q)
		}
		p.Sort()
		if text, want := rules.Text("", params...), string(p.appendEach(nil)); strings.TrimPrefix(text, "?") != want {
			t.Fatalf("%q, want %q", text, want)
		}
	})
}

func TestCanonicalQuery(t *testing.T) {
	for _, test := range []struct{ raw, want string }{
		{"", ""},
		{"&&&", ""},
		{"q=1&b=2", "b=2&q=1"},
		{"q=2&q=10&q=1&q=2", "q=1&q=10&q=2&q=2"}, // by bytes, repeated ones kept
		{"q", "q="},
		{"q=", "q="},
		{"=", "="},
		{"=v&=", "=&=v"},
		{"a=b=c", "a=b%3Dc"},
		{"q=a+b&r=a%20b", "q=a%20b&r=a%20b"},
		{"q=%2B", "q=%2B"},
		{"q=%7e%41&r=~", "q=~A&r=~"},
		{"q=%c3%a9", "q=%C3%A9"},
		{"q=é", "q=%C3%A9"},
		{"q=100%&r=%zz&s=%4", "q=100%25&r=%25zz&s=%254"},
		{"q=1;r=2", "q=1%3Br%3D2"}, // no separator
		{"a%26b=c%3Dd", "a%26b=c%3Dd"},
		{"path:id=1", "path%3Aid=1"},
		{"b=%01&b=%00&b", "b=&b=%00&b=%01"},
		{"a!=1&a=2", "a=2&a%21=1"},     // sorted as decoded: "" before "!"
		{"a~=1&a%7F=2", "a~=1&a%7F=2"}, // and "~" before DEL, though "%" is before "~"
		{"q=a%00b", "q=a%00b"},
	} {
		if got := canonicalQuery(test.raw); got != test.want {
			t.Errorf("canonicalQuery(%q) is %q, want %q", test.raw, got, test.want)
		}
	}
}

func checkCanonicalQuery(t interface{ Fatalf(string, ...any) }, raw string) {
	once := canonicalQuery(raw)
	if twice := canonicalQuery(once); twice != once {
		t.Fatalf("canonicalQuery(%q) is %q, and of that %q", raw, once, twice)
	}
	// net/url refuses a parameter with a ";" or an invalid "%". A query that it accepts must have
	// the same parameters afterwards.
	want, err := url.ParseQuery(raw)
	if err != nil {
		return
	}
	got, err := url.ParseQuery(once)
	if err != nil {
		t.Fatalf("canonicalQuery(%q) is %q: %v", raw, once, err)
	}
	for _, values := range []url.Values{got, want} {
		for _, v := range values {
			slices.Sort(v)
		}
	}
	if !slices.EqualFunc(sortedKeys(got), sortedKeys(want), func(a, b string) bool { return a == b && slices.Equal(got[a], want[b]) }) {
		t.Fatalf("canonicalQuery(%q) is %q: has %v, want %v", raw, once, got, want)
	}
}

func sortedKeys(v url.Values) (keys []string) {
	for k := range v {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func TestCanonicalQueryOfAnyBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkCanonicalQuery(t, anyText().Draw(t, "raw")) })
}

func FuzzCanonicalQuery(f *testing.F) {
	for _, raw := range []string{"q=1&b=2", "a=b=c&&=&q", "%zz=%4&%e9=+%2b;x", "\x00\xff&%00=%ff"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) { checkCanonicalQuery(t, raw) })
}

// Sort orders parameters by their decoded names, then values, then sources.
func TestSortIsByDecodedNameValueAndSource(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Params
		for _, q := range rapid.SliceOfN(anyNamed(), 0, 40).Draw(t, "params") {
			p.Add(q)
		}
		p.AddQuery(anyText().Draw(t, "query"))
		p.Sort()
		for i := 1; i < p.Len(); i++ {
			a, b := p.At(i-1), p.At(i)
			if a.Name > b.Name || a.Name == b.Name && (a.Value > b.Value || a.Value == b.Value && a.Source > b.Source) {
				t.Fatalf("%+v is before %+v", a, b)
			}
		}
	})
}

// Parameters added by name are part of keys that name them, and of no others.
func TestNamedParameters(t *testing.T) {
	var p Params
	p.AddQuery("q=1&b=2&token=3")
	p.AddNamed(rules.Param{Source: rules.Header, Name: "X-Plan", Value: "Gold"})
	p.AddNamed(rules.Param{Source: rules.Ctx, Name: "user"})
	p.AddPath("id", "7")
	p.Sort()
	if got, n := p.AppendAll(nil, &rules.Secrets{}); string(got) != "b=2&path:id=7&q=1" || n != 3 || p.Named() != 2 {
		t.Errorf("all: %s, %d, named %d", got, n, p.Named())
	}
	if s := p.Combine(&rules.By{Kind: rules.ByEach}, &rules.Secrets{}); s.Len() != 3 || s.Hidden != 1 {
		t.Errorf("each: %+v", s)
	}
	if c := p.Combine(&rules.By{Kind: rules.ByCombinations}, &rules.Secrets{}); c.Len() != 3 || c.Hidden != 1 {
		t.Errorf("combinations: %+v", c)
	}
	if got, n, ok := p.AppendNamed(nil, []rules.Param{{Source: rules.Header, Name: "x-plan"}, {Source: rules.Ctx, Name: "user"}, {Name: "b"}}); string(got) != "b=2&ctx:user=&header:x-plan=Gold" || n != 3 || !ok {
		t.Errorf("names: %s, %d, %v", got, n, ok)
	}
	p.Drop(rules.Header)
	p.Drop(rules.Path)
	if got, n := p.AppendAll(nil, &rules.Secrets{}); string(got) != "b=2&q=1" || n != 2 || p.Named() != 1 || p.Len() != 4 {
		t.Errorf("after Drop: %s, %d, named %d of %d", got, n, p.Named(), p.Len())
	}
	p.Reset()
	if p.Named() != 0 || p.Len() != 0 {
		t.Errorf("after Reset: %d of %d", p.Named(), p.Len())
	}
}

func TestAppendAllLeavesSecretsOut(t *testing.T) {
	var p Params
	p.AddQuery("q=1&access_token=abc&user%5Bpassword%5D=x&b=2")
	p.AddPath("token", "t")
	p.Sort()
	got, n := p.AppendAll([]byte("r?"), &rules.Secrets{})
	if string(got) != "r?b=2&q=1" || n != 2 {
		t.Errorf("%q, %d", got, n)
	}
}

func TestAppendNamedTakesNameAndSource(t *testing.T) {
	var p Params
	p.AddQuery("id=1&q=a%20b&x=3&x=4")
	p.AddPath("id", "7+%2b")
	p.Sort()
	got, n, ok := p.AppendNamed(nil, []rules.Param{{Source: rules.Path, Name: "id"}, {Name: "q"}, {Name: "missing"}})
	if want := "path:id=7%2B%2B&q=a%20b"; string(got) != want || n != 2 || !ok {
		t.Errorf("%q, %d, %v; want %q, 2", got, n, ok, want)
	}
	if got, n, ok := p.AppendNamed(nil, []rules.Param{{Name: "missing"}}); len(got) != 0 || n != 0 || !ok {
		t.Errorf("%q, %d, %v of a name that is not there", got, n, ok)
	}
	if _, _, ok := p.AppendNamed(nil, []rules.Param{{Name: "q"}, {Name: "x"}}); ok {
		t.Error("a name with two values makes one key")
	}
	many := make([]rules.Param, 70)
	for i := range many {
		many[i].Name = fmt.Sprint("n", i)
	}
	many[69].Name = "q"
	if _, _, ok := p.AppendNamed(nil, many); ok {
		t.Error("of so many names each is told apart")
	}
}

// A reused Params gives the same results as a new one, and parameters decoded earlier survive the
// decoding of later ones.
func TestParamsAreReusedWithoutTraces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var reused Params
		for range rapid.IntRange(1, 5).Draw(t, "requests") {
			reused.Reset()
			var fresh []rules.Param
			for range rapid.IntRange(0, 5).Draw(t, "parts") {
				if raw := anyText().Draw(t, "raw"); rapid.Bool().Draw(t, "path") {
					reused.AddPath("id", raw)
					fresh = append(fresh, rules.Param{Source: rules.Path, Name: "id", Value: string(base.AppendDecoded(nil, raw, false))})
				} else {
					reused.AddQuery(raw)
					var one Params
					one.AddQuery(raw)
					for i := range one.Len() {
						fresh = append(fresh, one.At(i))
					}
				}
			}
			for i := range reused.Len() {
				if reused.At(i) != fresh[i] {
					t.Fatalf("parameter %d is %+q, want %+q", i, reused.At(i), fresh[i])
				}
			}
			if reused.Len() != len(fresh) {
				t.Fatalf("%d parameters, want %d", reused.Len(), len(fresh))
			}
		}
		reused.Reset()
		for _, left := range reused.list[:cap(reused.list)] {
			if left != (param{}) {
				t.Fatalf("after Reset %+v is still held", left)
			}
		}
	})
}

// A buffer that grew for one huge query is not kept.
func TestResetKeepsNoMonster(t *testing.T) {
	var p Params
	for size, kept := range map[int]bool{1000: true, keepDecoded + 1: false} {
		p.Add(rules.Param{Source: rules.Query, Name: "q", Value: strings.Repeat("x", size)})
		p.Reset()
		if got := cap(p.decoded) > 0; got != kept {
			t.Errorf("the buffer of a value of %d bytes: kept %v, want %v", size, got, kept)
		}
	}
}

func TestParamsDoNotAllocateOnceWarm(t *testing.T) {
	var p Params
	var key []byte
	var secrets rules.Secrets
	for _, query := range []string{"q=phone&page=2", "q=a%20b+c&%C3%A9=%zz&x=%2541", strings.Repeat("k=v&", 50)} {
		work := func() {
			p.Reset()
			p.AddQuery(query)
			p.AddPath("id", "a%2Fb")
			p.Sort()
			key, _ = p.AppendAll(append(key[:0], "GET /s?"...), &secrets)
		}
		work()
		if n := testing.AllocsPerRun(100, work); n != 0 {
			t.Errorf("%q: %v allocations", query, n)
		}
	}
}

// The cost of a hostile query is n log n.
func TestSortOfAHostileQueryIsNotQuadratic(t *testing.T) {
	query := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%d=x&", (n-i)*7919%n)
		}
		return b.String()
	}
	// The test measures processor time, since elapsed time means nothing on a busy machine.
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano())
	}
	mean := func(raw string, times int) time.Duration {
		begin := used()
		for range times {
			canonicalQuery(raw)
		}
		return (used() - begin) / time.Duration(times)
	}
	// For 256 times as many parameters, a quadratic sort takes 65,536 times as long. An n log n
	// sort takes 460 times as long, or a few times that if the caches are too small.
	small, large := mean(query(1000), 200), mean(query(256_000), 1)
	if large > 10_000*small {
		t.Errorf("1,000 parameters take %v, 256,000 take %v: %.0f times as long", small, large, float64(large)/float64(small))
	}
}

func BenchmarkParams(b *testing.B) {
	for _, query := range []string{"q=phone&page=2", "q=red%20shoes&page=2"} {
		b.Run(query, func(b *testing.B) {
			var p Params
			var key []byte
			var secrets rules.Secrets
			b.ReportAllocs()
			for b.Loop() {
				p.Reset()
				p.AddQuery(query)
				p.Sort()
				key, _ = p.AppendAll(append(key[:0], "GET /search?"...), &secrets)
			}
		})
	}
}
