package hotparam

import (
	"testing"

	"pgregory.net/rapid"
)

func TestIsTotal(t *testing.T) {
	for text, want := range map[string]bool{
		"GET /s?*": true, "*": true, "": false, "GET /s?": false, "GET /s?a=*": false, "GET /*": false, "a=1": false, "?*": true,
	} {
		if IsTotal([]byte(text)) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

// No request spells a total.
func TestNoParameterSpellsATotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := Param{Name: rapid.SampledFrom([]string{"*", "", "?*", "a"}).Draw(t, "name"), Value: rapid.SampledFrom([]string{"*", "", "?*"}).Draw(t, "value")}
		var p Params
		p.Add(q)
		for _, text := range []string{string(p.AppendOne(nil, 0)), Text("GET /s", q)} {
			if IsTotal([]byte(text)) {
				t.Fatalf("%q of %+v", text, q)
			}
		}
	})
}
