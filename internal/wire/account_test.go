package wire_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/wire"
)

func TestAccountRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := wire.Account{Number: rapid.Uint64Min(1).Draw(t, "number"), Total: rapid.Uint64().Draw(t, "total")}
		line := wire.AppendAccount([]byte("shop.search.hot_param.GET%20/s?q=1:3|c"), a)
		rest, got, ok := wire.CutAccount(line)
		if !ok || got != a || string(rest) != "shop.search.hot_param.GET%20/s?q=1:3|c" {
			t.Fatalf("%q reads %q, %+v, %v", line, rest, got, ok)
		}
		// A reader without support for accounts reads the same count.
		if l, err := wire.ParseLine(line); err != nil || l.N != 3 || l.Frac != 0 || l.When != 0 {
			t.Fatalf("%q reads %+v, %v", line, l, err)
		}
	})
}

func TestNoAccount(t *testing.T) {
	for _, line := range []string{
		"", "k", "|k:", "a:1|c", "a:1|c|k:", "a:1|c|k:1", "a:1|c|k:1.", "a:1|c|k:.1", "a:1|c|k:0.1", "a:1|c|k:1.g",
		"a:1|c|c:1.2", "k:1.2", "a:1|c|k:1.2|#t", "a:1|c|k:11112222333344445.1", "a:1|c|k:1.2.3", "a:1|c|k:1.A",
	} {
		if rest, a, ok := wire.CutAccount([]byte(line)); ok || string(rest) != line || a != (wire.Account{}) {
			t.Errorf("%q reads %q, %+v, %v", line, rest, a, ok)
		}
	}
}
