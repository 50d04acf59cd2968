package base

import "testing"

func TestIsTotal(t *testing.T) {
	for text, want := range map[string]bool{
		"GET /s?*": true, "*": true, "": false, "GET /s?": false, "GET /s?a=*": false, "GET /*": false, "a=1": false, "?*": true,
	} {
		if IsTotal([]byte(text)) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
