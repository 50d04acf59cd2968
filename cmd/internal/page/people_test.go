package page

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestParseTokens(t *testing.T) {
	got, err := ParseTokens([]byte("# people\r\n\nann  0123456789abcdef\r\n bob\t" + testToken + "\n"))
	if err != nil || len(got) != 2 || got[0] != (NamedToken{"ann", "0123456789abcdef"}) || got[1] != (NamedToken{"bob", testToken}) {
		t.Errorf("%v, %v", got, err)
	}
	var many strings.Builder
	for i := range maxTokens + 1 {
		fmt.Fprintf(&many, "p%d 0123456789abcdef%d\n", i, i)
	}
	for text, want := range map[string]string{
		"":                      "no tokens",
		"ann":                   "line 1: want a name and a token",
		"ann a b":               "line 1: want a name and a token",
		"\nann 0123456789abcde": "line 2: the token has 15 bytes",
		testToken + " ann":      "line 1: the token has 3 bytes",
		"a/b 0123456789abcdef":  "line 1: the name",
		"ann " + testToken + "\nann 0123456789abcdef0": "line 2: an earlier line has the same name",
		"ann " + testToken + "\nbob " + testToken:      "line 2: an earlier line has the same token",
		many.String():                                       "line 101: more than 100",
		"ann " + strings.Repeat("x", 1<<17):                 "too long",
		strings.Repeat("x", 65) + " " + testToken + "extra": "line 1: the name",
	} {
		_, err := ParseTokens([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "0123456789") {
			t.Errorf("%.60q: %v, want %q and no token", text, err, want)
		}
	}
}

func FuzzParseTokens(f *testing.F) {
	f.Add([]byte("ann " + testToken + "\n# x\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		tokens, err := ParseTokens(text)
		if (err == nil) != (len(tokens) > 0) {
			t.Fatalf("%v, %v", tokens, err)
		}
		for _, token := range tokens {
			if !isPersonName(token.Name) || token.Name == "" || len(token.Token) < minToken || !bytes.Contains(text, []byte(token.Token)) {
				t.Fatalf("%+v", token)
			}
		}
	})
}
