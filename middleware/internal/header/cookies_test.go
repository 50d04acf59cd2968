package header

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/rules"
)

func cookiesOf(lines []string, name string) (values []string) {
	for _, line := range lines {
		for {
			value, rest, found := Cookie(line, name)
			if !found {
				break
			}
			values, line = append(values, value), rest
		}
	}
	return values
}

// The cookies of a name are the same as net/http finds.
func FuzzCookies(f *testing.F) {
	for _, line := range []string{"", "cart=1", "cart=1; cart=2", ` cart = "a b" ;x`, `cart="`, "cart", "=cart", "cart=a\\b; cart=\x7f; cart=c", "\tcart=1 ;;; cart=", "cart2=1;car=2;cart=3", `cart=""`, "cart= 1", "cart\n=1"} {
		f.Add(line, line, "cart")
		f.Add(line, "cart=9", "cart")
	}
	f.Fuzz(func(t *testing.T, first, second, name string) {
		message, _ := rules.Param{Source: rules.Cookie, Name: name}.CheckName()
		if message != "" || strings.Count(first+second, ";") > 2000 { // net/http reads none then
			return
		}
		r := http.Request{Header: http.Header{"Cookie": {first, second}}}
		var want []string
		for _, c := range r.CookiesNamed(name) {
			want = append(want, c.Value)
		}
		if got := cookiesOf(r.Header["Cookie"], name); !slices.Equal(got, want) {
			t.Errorf("%q of %q and %q: %q, want %q", name, first, second, got, want)
		}
	})
}
