package onhot

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/rules"
)

// A handler sees the policy's cookies as the request had them, and no other.
func FuzzNamedCookies(f *testing.F) {
	for _, s := range []string{"lang=en", "a=b; lang=en;lang=de", ` lang="x, y" ; =; lang`, "lang =en", "a=\"x; lang=en\"", "LANG=en", "lang=en;\t;lang", "\u00a0lang=en"} {
		f.Add(s, "session=1")
	}
	p := NewPolicy(rules.OnHot{Coalesce: true, Vary: []string{"cookie:lang", "cookie:currency"}})
	parse := func(values ...string) []*http.Cookie {
		return (&http.Request{Header: http.Header{"Cookie": values}}).Cookies()
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		kept := p.namedCookies([]string{first, second})
		if again := p.namedCookies([]string{kept}); again != kept {
			t.Fatalf("%q, then %q", kept, again)
		}
		want := slices.DeleteFunc(parse(first, second), func(c *http.Cookie) bool { return c.Name != "lang" && c.Name != "currency" })
		got := parse(kept)
		if !slices.EqualFunc(got, want, func(a, b *http.Cookie) bool { return a.String() == b.String() }) {
			t.Fatalf("%q, %q: %q: %v, want %v", first, second, kept, got, want)
		}
	})
}

// The order of codings and the headers that they are in make no difference, and none is accepted that
// is not named.
func FuzzAcceptedCodings(f *testing.F) {
	f.Add("gzip, br", "zstd;q=0")
	f.Add("x-gzip;q=0.0, GZIP;q=1", "*;q=0,deflate ; q = 0.")
	f.Fuzz(func(t *testing.T, first, second string) {
		got := acceptedCodings([]string{first, second})
		if again := acceptedCodings([]string{got}); again != got {
			t.Fatalf("%q, then %q", got, again)
		}
		for _, other := range [][]string{{second, first}, {first + "," + second}, {second + " ,\t" + first, ""}} {
			if again := acceptedCodings(other); again != got {
				t.Fatalf("%q: %q, but %q: %q", []string{first, second}, got, other, again)
			}
		}
		for coding := range strings.SplitSeq(got, ", ") {
			if !strings.Contains(strings.ToLower(strings.ToUpper(first+second)), coding) {
				t.Fatalf("%q, %q: %q", first, second, got)
			}
			if refused := acceptedCodings([]string{coding + ";q=0.000"}); refused != "" {
				t.Fatalf("%q", refused)
			}
		}
	})
}

// An answer is shared only if the key has all that Vary names, wherever it is written.
func FuzzVary(f *testing.F) {
	f.Add("Accept-Encoding", "x-plan")
	f.Add("x-plan , ,", "*")
	p := NewPolicy(rules.OnHot{Coalesce: true, Vary: []string{"header:x-plan", "header:*"}})
	f.Fuzz(func(t *testing.T, first, second string) {
		refuse := func(values ...string) Reason { return p.refuseAnswer(http.StatusOK, http.Header{"Vary": values}) }
		got := refuse(first, second)
		if refuse(second+","+first) != got {
			t.Errorf("%q, %q: %q, but not in the other order", first, second, got)
		}
		if refuse(first+", *,"+second) != ReasonVary || refuse(first, "Origin", second) != ReasonVary {
			t.Errorf("%q, %q: shared", first, second)
		}
		rest := strings.NewReplacer("accept-encoding", "", "x-plan", "").Replace(strings.ToLower(first + "," + second))
		if got == ReasonNone && strings.Trim(rest, " \t\r\n,") != "" {
			t.Errorf("%q, %q: shared, with %q", first, second, rest)
		}
	})
}

// A date that is read is one for net/http too, and no other time.
func FuzzParseDate(f *testing.F) {
	f.Add("Mon, 08 Aug 2050 02:01:18 GMT")
	f.Add("Monday, 08-Aug-50 02:01:18 gmt")
	f.Add("Mon Aug  8 02:01:18 2050")
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := parseDate([]string{text})
		if !ok {
			return
		}
		want, err := http.ParseTime(strings.ToUpper(text))
		if err != nil || !want.Equal(got) {
			t.Fatalf("%q: %v, want %v, %v", text, got, want, err)
		}
		if back, ok := parseDate([]string{got.Format(http.TimeFormat)}); !ok || !back.Equal(got) {
			t.Fatalf("%v, then %v", got, back)
		}
	})
}

// An entity tag is found in a list whatever is before it, if that is a list, and only if it is there.
func FuzzMatchesTag(f *testing.F) {
	f.Add(`"a", W/"b"`, "x")
	f.Add(`*`, "")
	f.Add(`"a`, `a", "b`)
	f.Fuzz(func(t *testing.T, list, opaque string) {
		if strings.Contains(opaque, `"`) {
			return
		}
		tag := `"` + opaque + `"`
		if matchesTag([]string{list}, tag) && !strings.Contains(list, tag) && !strings.Contains(list, "*") {
			t.Fatalf("%q has no %q", list, tag)
		}
		if !matchesTag([]string{list, tag}, "W/"+tag) || !matchesTag([]string{tag + "," + list}, tag) || !matchesTag([]string{`"a" , W/"b",` + tag}, tag) {
			t.Fatalf("%q is not found beside %q", tag, list)
		}
	})
}
