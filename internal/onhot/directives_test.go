package onhot

import (
	"strings"
	"testing"
	"time"
)

const none = -1 * time.Nanosecond

func TestParseDirectives(t *testing.T) {
	empty := directives{maxAge: none, sMaxAge: none, minFresh: none}
	with := func(change func(d *directives)) directives {
		d := empty
		change(&d)
		return d
	}
	noStore := with(func(d *directives) { d.noStore = true })
	for _, c := range []struct {
		values []string
		want   directives
	}{
		{nil, empty},
		{[]string{""}, empty},
		{[]string{" , ,"}, empty},
		{[]string{"public, x=1, community=\"UCI\""}, empty}, // RFC 9111, section 5.2.3
		{[]string{"no-store"}, noStore},
		{[]string{"No-Store"}, noStore},
		{[]string{"public", "no-store"}, noStore},
		{[]string{"no-cache"}, with(func(d *directives) { d.noCache = true })},
		{[]string{`no-cache="set-cookie"`}, with(func(d *directives) { d.noCache = true })},
		{[]string{`private="x-user, x-other", max-age=5`}, with(func(d *directives) { d.private, d.maxAge = true, 5*time.Second })},
		{[]string{"must-revalidate"}, with(func(d *directives) { d.mustRevalidate = true })},
		{[]string{"proxy-revalidate"}, with(func(d *directives) { d.mustRevalidate = true })},
		{[]string{"max-age=60"}, with(func(d *directives) { d.maxAge = time.Minute })},
		{[]string{`max-age="60"`}, with(func(d *directives) { d.maxAge = time.Minute })},
		{[]string{"max-age = 60"}, with(func(d *directives) { d.maxAge = time.Minute })},
		{[]string{"max-age=60, max-age=5"}, with(func(d *directives) { d.maxAge = 5 * time.Second })},
		{[]string{"max-age=5", "max-age=60"}, with(func(d *directives) { d.maxAge = 5 * time.Second })},
		{[]string{"max-age"}, with(func(d *directives) { d.maxAge = 0 })},
		{[]string{"max-age=-1"}, with(func(d *directives) { d.maxAge = 0 })},
		{[]string{"max-age=1.5"}, with(func(d *directives) { d.maxAge = 0 })},
		{[]string{"max-age=99999999999999999999"}, with(func(d *directives) { d.maxAge = 1 << 31 * time.Second })},
		{[]string{"s-maxage=1, min-fresh=2"}, with(func(d *directives) { d.sMaxAge, d.minFresh = time.Second, 2*time.Second })},
		{[]string{"max-age=60; private"}, with(func(d *directives) { d.maxAge, d.private = time.Minute, true })},
		// A directive in a quoted string is none, and an unclosed one may hide any.
		{[]string{`x="private, no-cache"`}, empty},
		{[]string{`x="a\"b, private"`}, empty},
		{[]string{`x="a, private`}, noStore},
		{[]string{`x="a\`}, noStore},
		{[]string{"max-age=60 private"}, with(func(d *directives) { d.maxAge, d.noStore = none, true })},
		{[]string{"\x00"}, noStore},
		{[]string{"=1"}, noStore},
	} {
		if got := parseDirectives(c.values); got != c.want {
			t.Errorf("%q: %+v, want %+v", c.values, got, c.want)
		}
	}
}

// However a directive that forbids is written, it is found, or the field counts as malformed.
func FuzzDirectives(f *testing.F) {
	f.Add("max-age=5", "private", `x="a`)
	f.Add(`x="a\`, "no-store", ",;")
	f.Fuzz(func(t *testing.T, before, name, after string) {
		if d := parseDirectives([]string{before, "private", after}); !d.private {
			t.Fatalf("%q hides private in a field of its own", before)
		}
		d := parseDirectives([]string{before + ",private," + after})
		if !d.private && !d.noStore && strings.Count(before, `"`)%2 == 0 && !strings.Contains(before, `\`) {
			t.Fatalf("%q hides private", before)
		}
		d = parseDirectives([]string{name})
		if d.maxAge < -1 || d.sMaxAge < -1 || d.minFresh < -1 {
			t.Fatalf("%q: %+v", name, d)
		}
	})
}

func TestParseSeconds(t *testing.T) {
	for text, want := range map[string]time.Duration{"0": 0, "1": time.Second, "2147483648": 1 << 31 * time.Second, "2147483649": 1 << 31 * time.Second, "18446744073709551617": 1 << 31 * time.Second} {
		if got, ok := parseSeconds(text); !ok || got != want {
			t.Errorf("%s: %v %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "-1", "+1", "1s", " 1", "0x1"} {
		if got, ok := parseSeconds(text); ok || got != 0 {
			t.Errorf("%q: %v %v", text, got, ok)
		}
	}
}

func TestParseDate(t *testing.T) {
	want := time.Date(2050, 8, 8, 2, 1, 18, 0, time.UTC)
	for _, text := range []string{
		"Mon, 08 Aug 2050 02:01:18 GMT", "MON, 08 aug 2050 02:01:18 gMT", "Sun, 08 Aug 2050 02:01:18 GMT",
		"Monday, 08-Aug-50 02:01:18 GMT", "Mon Aug  8 02:01:18 2050",
	} {
		if got, ok := parseDate([]string{text}); !ok || !got.Equal(want) {
			t.Errorf("%q: %v %v", text, got, ok)
		}
	}
	for _, text := range []string{
		"", "0", "GMT", "Mon, 08 Aug 2050 2:01:18 GMT", "Mon, 08  Aug 2050 02:01:18 GMT", "Mon,  08 Aug 2050 02:01:18 GMT",
		"Mon, 08 Aug 2050 02:01:18.5 GMT", "Mon, 08 Aug 2050 02:01:18 PST", "Mon, 08 Aug 2050 02:01:18 GMT ", "Mon, 08 Aug 50 02:01:18 GMT",
		"Monday, 08-Aug-50 02:01:18 PST", "Monday, 08-Aug-50 2:01:18 GMT", "Mon Aug 8 02:01:18 2050", "Mon Aug  8 2:01:18 2050",
	} {
		if got, ok := parseDate([]string{text}); ok {
			t.Errorf("%q: %v", text, got)
		}
	}
	if _, ok := parseDate([]string{"Mon, 08 Aug 2050 02:01:18 GMT", "Mon, 08 Aug 2050 02:01:18 GMT"}); ok {
		t.Error("two dates")
	}
}
