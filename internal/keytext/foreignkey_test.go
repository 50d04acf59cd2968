package keytext_test

import (
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/keytext"
	"github.com/hotparam/hotparam/rules"
)

func canonicalRule(t interface {
	Helper()
	Fatal(...any)
}, route string, paramsOnly bool) *rules.Rule {
	t.Helper()
	parsed, err := rules.ParseRoute(route)
	if err != nil {
		t.Fatal(err)
	}
	return &rules.Rule{Match: rules.Match{Route: parsed}, ParamsOnly: paramsOnly}
}

// canonical returns the text that instances count, and whether it differs from text.
func canonical(r *rules.Rule, text string) (string, bool) {
	got, changed := keytext.NewCanonicalizer(r).Append([]byte("before"), []byte(text))
	if !changed {
		return text, len(got) != len("before")
	}
	return strings.TrimPrefix(string(got), "before"), true
}

func TestCanonicalizer(t *testing.T) {
	long := strings.Repeat("x", 600)
	cut := rules.Text("GET /s", rules.Param{Name: "q", Value: long})
	cut = string(base.CutKey([]byte(cut), rules.MaxText))
	for _, test := range []struct{ route, text, want string }{
		{"*", "GET /s?q=phone", ""},
		{"*", "GET /s?q=7%20inch&q=%C3%A9", ""},
		{"*", "GET /s?path:id=7&q=1", "GET /s?path:id=7&q=1"},
		{"*", "GET /s?q=1&path:id=7", "GET /s?path:id=7&q=1"},
		{"*", "GET /s?q=1&path:q=1", ""},
		{"*", "GET /s?ctx:user=1&header:x-plan=Gold", ""},
		{"*", "GET /s?header:X-Plan=Gold", "GET /s?header:x-plan=Gold"},
		{"*", "GET /s?header:x-%50lan=Gold", "GET /s?header:x-plan=Gold"},
		{"*", "GET /s?header:x-%2Aa=%C3%89", ""},
		{"*", "GET /s?cookie:Cart=A", ""},
		{"*", "GET /s?addr:v4/24=192.0.2.0/24", "GET /s?addr:v4%2F24=192.0.2.0%2F24"},
		{"*", "GET /s?path:q=1&q=1", "GET /s?q=1&path:q=1"},
		{"*", "GET /s", ""},
		{"*", "GET /s?", "GET /s"},
		{"*", "GET /s?&&", "GET /s"},
		{"*", "GET /s?page=2&lang=en", "GET /s?lang=en&page=2"},
		{"*", "GET /s?b=1&a=2&c=3", "GET /s?a=2&b=1&c=3"},
		{"*", "GET /s?q=2&q=1", "GET /s?q=1&q=2"},
		{"*", "GET /s?q=1&q=1", ""},
		{"*", "GET /s?a=1&&b=2&", "GET /s?a=1&b=2"},
		{"*", "GET /s?flag", "GET /s?flag="},
		{"*", "GET /s?=1", ""},
		{"*", "GET /s?q=%7ea", "GET /s?q=~a"},
		{"*", "GET /s?q=%c3%a9", "GET /s?q=%C3%A9"},
		{"*", "GET /s?q=é", "GET /s?q=%C3%A9"},
		{"*", "GET /s?q=7+inch", "GET /s?q=7%20inch"},
		{"*", "GET /s?path:id=7+8", "GET /s?path:id=7%2B8"},
		{"*", "GET /s?q=100%", "GET /s?q=100%25"},
		{"*", "GET /s?q=a=b", "GET /s?q=a%3Db"},
		{"*", "GET /s?q=what?&a=1", "GET /s?a=1&q=what%3F"},
		{"*", "GET /s?user:id=7", "GET /s?user%3Aid=7"},
		{"*", "GET /s?:id=7", "GET /s?%3Aid=7"},
		{"*", "GET /s?query:q=1", "GET /s?q=1"},
		{"*", "GET /s?path:path:id=7", "GET /s?path:path%3Aid=7"},
		{"*", "GET /s?%C3=1&z=1", "GET /s?z=1&%C3=1"}, // in the order of the bytes
		{"*", "GET /s?z=1&%C3=1", ""},
		{"*", "GET /s?a%20=1&a=1", "GET /s?a=1&a%20=1"},
		{"*", "GET /s?a=1&a%20=1", ""},
		// Routes.
		{"*", "GET /se%61rch/%c3%a9?q=1", "GET /search/%C3%A9?q=1"},
		{"*", "GET /se%61rch", "GET /search"},
		{"GET /se%61rch", "GET /se%61rch?b=1&a=2", "GET /search?a=2&b=1"},
		{"*", "/se%61rch?b=1&a=2", "/search?a=2&b=1"},
		{"*", "GET /%%36%31?q=1", ""},
		{"*", "GET /café/{id}/%c3?q=1", ""},
		{"*", "GET /u/{id:[a-z]?}", ""},
		{"*", "GET /u/{id:[a-z]?}?b=1&a=1", "GET /u/{id:[a-z]?}?a=1&b=1"},
		{"*", "GET /u/:name?", ""},
		{"*", "GET /u/:name??b=1&a=1", "GET /u/:name??a=1&b=1"},
		{"*", "GET /u/:name?b=1&a=1", "GET /u/:name?a=1&b=1"},
		{"*", "GET example.com/s?b=1&a=1", "GET example.com/s?a=1&b=1"},
		// Resources.
		{"*", "Search/Find?q=1&a=%7e", "Search/Find?a=~&q=1"},
		{"*", "why?", ""},
		{"*", "why?not", ""},
		{"*", "why?not?b=1&a=1", "why?not?a=1&b=1"},
		{"why?b&a=1", "why?b&a=1", ""},
		{"why?b&a=1", "why?b&a=1?d=1&c=1", "why?b&a=1?c=1&d=1"},
		{"why", "another?d=1&c=1", ""},
		// Names that no request can have.
		{"*", "GET /s?~more", ""},
		{"Search/Find", "Search/Find?~more", ""},
		{"*", "Search/Find?~more", ""},
		{"POST /s", "POST /s?form:~unread", ""},
		{"*", "Search/Find?json:~unread", ""},
		{"*", "POST /s?form:~unread=&a=2", "POST /s?a=2&form:~unread="},
		{"*", "GET /s?~again&q&page", ""},
		{"*", "Search/Find?~again&q&page", ""},
		{"*", "GET /s?*", "GET /s?%2A="}, // not a total, as a total is a request's only key
		{"*", "GET /s?~more=1&a=2", "GET /s?a=2&~more=1"},
		{"*", "GET /s?~again=1&a", "GET /s?a=&~again=1"},
		// Texts that a program invented.
		{"*", "checkout", ""},
		{"*", "check %out", ""},
		{"*", "a=1&b", ""},
		{"*", "", ""},
		// Long texts.
		{"*", cut, ""},
		{"*", "GET /s?z=1&a=1~0123456789abcdef0123456789abcdef", ""},
		{"*", "GET /s?z=1&a=1~0123456789ABCDEF0123456789ABCDEF", "GET /s?a=1~0123456789ABCDEF0123456789ABCDEF&z=1"},
		{"*", "GET /s?q=" + long, cut},
		{"*", "GET /s?q=" + strings.ReplaceAll(long, "x", "%78"), cut},
	} {
		want := test.want
		if want == "" {
			want = test.text
		}
		got, changed := canonical(canonicalRule(t, test.route, false), test.text)
		if got != want || changed != (want != test.text) {
			t.Errorf("route %q: %q is %q (changed: %v), want %q", test.route, test.text, got, changed, want)
		}
	}
}

func TestCanonicalizerOfParametersAlone(t *testing.T) {
	for text, want := range map[string]string{
		"q=phone": "q=phone", "b=1&a=%7e": "a=~&b=1", "flag&a=1": "a=1&flag=", "a=1?b=2": "a=1%3Fb%3D2",
		"GET /s?q=1": "GET%20%2Fs%3Fq=1", "checkout": "checkout", "a%zz": "a%zz", "*": "*", "~more": "~more", "~again&q&page": "~again&q&page",
	} {
		if got, changed := canonical(canonicalRule(t, "*", true), text); got != want || changed != (want != text) {
			t.Errorf("%q is %q (changed: %v), want %q", text, got, changed, want)
		}
	}
}

// However a program writes a request's parameters, the request gets the same key.
func TestHoweverParametersAreWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		route := rapid.SampledFrom([]string{"GET /s", "POST /files/{path...}", "Search/Find"}).Draw(t, "route")
		paramsOnly := rapid.Bool().Draw(t, "params only")
		var params []rules.Param
		var texts []string
		for range rapid.IntRange(1, 20).Draw(t, "n") {
			p := rules.Param{
				Source: rapid.SampledFrom([]rules.Source{rules.Query, rules.Query, rules.Path}).Draw(t, "source"),
				Name:   rapid.SampledFrom([]string{"q", "a", "ab", "a b", "é", "x[y]", "path:q", "", "%41"}).Draw(t, "name"),
				Value:  rapid.OneOf(rapid.SampledFrom([]string{"", "1", "2", "phone"}), rapid.String(), rapid.StringMatching(`[ -~]{0,8}`)).Draw(t, "value"),
			}
			params = append(params, p)
			text := ""
			if p.Source == rules.Path {
				text = "path:"
			}
			path := p.Source == rules.Path
			text += spelled(t, p.Name, path) + "=" + spelled(t, p.Value, path)
			texts = append(texts, text)
		}
		want, written := rules.Text(route, params...), route+"?"+strings.Join(texts, "&")
		if paramsOnly {
			want, written = want[len(route)+1:], written[len(route)+1:]
		}
		want = string(base.CutKey([]byte(want), rules.MaxText))
		if len(written) <= rules.MaxText && base.IsCutKey([]byte(written)) {
			return
		}
		r := canonicalRule(t2{t}, "*", paramsOnly)
		if got, _ := canonical(r, written); got != want {
			t.Fatalf("%q is %q, want %q", written, got, want)
		}
		if got, changed := canonical(r, want); changed {
			t.Fatalf("%q is not canonical: %q", want, got)
		}
	})
}

// t2 adapts a rapid.T to the functions that make rules.
type t2 struct{ *rapid.T }

func (t2) Helper() {}

// spelled writes a text in one of the ways in which programs may: with needless escapes, lower-case
// escapes, or a space as +.
func spelled(t *rapid.T, s string, path bool) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		plain := c < 0x80 && url.QueryEscape(string(rune(c))) == string(rune(c))
		switch way := rapid.IntRange(0, 3).Draw(t, "way"); {
		case way == 0 && c == ' ' && !path:
			b.WriteByte('+')
		case way == 1:
			fmt.Fprintf(&b, "%%%02x", c)
		case way == 2 && plain:
			b.WriteByte(c)
		case way == 3 && c > 0x20 && !strings.ContainsRune("%&=+:?", rune(c)): // taken unchanged
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// The corrections that docs/PRODUCERS.md describes take place.
func TestWhatIsPutRightIsAsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/PRODUCERS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n### What is put right\n")
	table, _, _ = strings.Cut(table, "\n### ")
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)`(.*) \\| `([^`]+)` \\|$").FindAllStringSubmatch(table, -1)
	for _, row := range rows {
		if got, _ := canonical(canonicalRule(t, "*", strings.Contains(row[2], "key: params")), row[1]); got != row[3] {
			t.Errorf("%q is %q, documented as %q", row[1], got, row[3])
		}
	}
	if len(rows) != 6 {
		t.Errorf("%d rows are found", len(rows))
	}
}

// The reference for queries is net/url.
func FuzzCanonicalizer(f *testing.F) {
	for _, text := range []string{"GET /s?b=1&a=%7e", "GET /u/:id?/x?q", "GET /{a?}?%", "a?b?c=d&a=1", "GET /%2561?path:a=+&a", "GET /%%36%31/?x", "GET /s?*", "GET /s?~more", "GET /s?a=%41&%C3=b&header:x=1&="} {
		f.Add(text, false, "*")
		f.Add(text, true, "why?b")
	}
	f.Fuzz(func(t *testing.T, text string, paramsOnly bool, route string) {
		parsed, err := rules.ParseRoute(route)
		if err != nil {
			return
		}
		r := &rules.Rule{Match: rules.Match{Route: parsed}, ParamsOnly: paramsOnly}
		before := strings.Clone(text)
		got, changed := canonical(r, text)
		if text != before || changed != (got != text) {
			t.Fatalf("%q: %q, changed: %v", before, got, changed)
		}
		if len(got) > rules.MaxText {
			t.Fatalf("%q has %d bytes", got, len(got))
		}
		if again, _ := canonical(r, got); again != got {
			t.Fatalf("%q is %q, and that is %q", text, got, again)
		}
		query, ok := strings.CutPrefix(text, "GET /s?")
		if !ok || paramsOnly || !parsed.IsAny() || len(text) > 100 || base.IsCutKey([]byte(text)) || strings.ContainsAny(query, ";:?") ||
			query == "~more" || strings.HasPrefix(query, "~again&") {
			return
		}
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		want, params := "GET /s", []string(nil)
		for name, all := range values {
			for _, value := range all {
				params = append(params, escape(name)+"="+escape(value))
			}
		}
		slices.SortFunc(params, func(a, b string) int {
			x, _ := url.ParseQuery(a)
			y, _ := url.ParseQuery(b)
			for n, v := range x {
				for m, w := range y {
					if n != m {
						return strings.Compare(n, m)
					}
					return strings.Compare(v[0], w[0])
				}
			}
			return 0
		})
		if len(params) > 0 {
			want += "?" + strings.Join(params, "&")
		}
		if len(want) <= rules.MaxText && got != want {
			t.Fatalf("%q is %q, want %q", text, got, want)
		}
	})
}

// escape escapes as RFC 3986 says, by means of net/url.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// A total stays a total, since a program may count one for a rule whose keys overlap.
func TestCanonicalizerLeavesTotals(t *testing.T) {
	for _, test := range []struct{ route, text, want string }{
		{"*", "GET /s?*", "GET /s?*"},
		{"*", "GET /se%61rch?*", "GET /search?*"},
		{"Search/Find", "Search/Find?*", "Search/Find?*"},
		{"*", "Search/Find?*", "Search/Find?*"},
		{"*", "GET /s?*=1&a=2", "GET /s?%2A=1&a=2"},
		{"*", "GET /s?*&a=2", "GET /s?%2A=&a=2"},
	} {
		for _, kind := range []rules.ByKind{rules.ByEach, rules.ByCombinations} {
			r := canonicalRule(t, test.route, false)
			r.Hot, r.By.Kind = make([]rules.Threshold, 1), kind
			if got, _ := canonical(r, test.text); got != test.want {
				t.Errorf("%q is %q, want %q", test.text, got, test.want)
			}
			if total := base.IsTotal([]byte(test.text)); total != base.IsTotal([]byte(test.want)) {
				t.Errorf("%q: a total: %v", test.text, total)
			}
		}
	}
	r := canonicalRule(t, "*", true)
	r.Hot = make([]rules.Threshold, 1)
	if got, changed := canonical(r, base.TotalParams); changed {
		t.Errorf("the total of all requests is %q", got)
	}
}

func TestCanonicalizerDoesNotAllocate(t *testing.T) {
	c, dst := keytext.NewCanonicalizer(canonicalRule(t, "GET /s", false)), make([]byte, 0, 256)
	for _, text := range []string{"GET /s?q=phone", "GET /s?a=%C3%A9&b=1", "GET /s?b=1&a=%7e&path:c=1", "GET /s"} {
		b := []byte(text)
		c.Append(dst, b)
		if n := testing.AllocsPerRun(100, func() { c.Append(dst, b) }); n != 0 {
			t.Errorf("%q: %v allocations", text, n)
		}
	}
}

// A key that begins like the previous one gets the same result as a key checked alone, for any keys
// in any order.
func TestCanonicalizerOfKeysAlike(t *testing.T) {
	pieces := []string{"GET /s?", "GET /s", "a=", "b=", "path:a=", "q=", "&", "&", "1", "2", "phone", "%41", "%20", "x=", "~more", "é", "?", "~0123456789abcdef0123456789abcdef", "GET /a=b?", strings.Repeat("y", 500)}
	keys := []string{"GET /s?a=2&a=2", "a=2&a=2", "GET /s?q=2&path:q=2", "GET /s?a=1&b=2", "a=1&b=2", "GET /a=b"}
	alike := 0
	rapid.Check(t, func(t *rapid.T) {
		r := canonicalRule(t2{t}, rapid.SampledFrom([]string{"*", "GET /s", "a=1"}).Draw(t, "route"), rapid.Bool().Draw(t, "params only"))
		c := keytext.NewCanonicalizer(r)
		var last string
		for range 20 {
			text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 8).Draw(t, "pieces"), "")
			if rapid.IntRange(0, 4).Draw(t, "whole") == 0 {
				text = rapid.SampledFrom(keys).Draw(t, "key")
			} else if at := strings.LastIndexByte(last, '='); at >= 0 && rapid.IntRange(0, 2).Draw(t, "alike") > 0 {
				text = last[:at+1] + rapid.SampledFrom(pieces).Draw(t, "value")
				alike++
			}
			last = text
			want, changed := canonical(r, text)
			got, also := c.Append(nil, []byte(text))
			if also != changed || changed && string(got) != want {
				t.Fatalf("%q behind others is %q (changed: %v), alone %q (changed: %v)", text, got, also, want, changed)
			}
		}
	})
	if !testing.Short() && alike == 0 {
		t.Error("no key began as the one before")
	}
}

func BenchmarkCanonicalizer(b *testing.B) {
	for _, texts := range [][]string{
		{"GET /search?q=phone", "GET /search?q=shoes"},
		{"GET /search?q=phone", "GET /search?page=2"},
		{"GET /search?lang=en&page=2&q=7%20inch", "GET /search?lang=en&page=3&q=7%20inch"},
		{"GET /search?q=phone&lang=en"},
	} {
		b.Run(strings.Join(texts, ","), func(b *testing.B) {
			c, dst := keytext.NewCanonicalizer(canonicalRule(b, "GET /s", false)), make([]byte, 0, 256)
			var all [][]byte
			for _, text := range texts {
				all = append(all, []byte(text))
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c.Append(dst, all[i%len(all)])
			}
		})
	}
}
