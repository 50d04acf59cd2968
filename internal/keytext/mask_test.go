package keytext

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

func TestSecretsWithinValues(t *testing.T) {
	for value, want := range map[string]string{
		"https://u:hunter2@h/":             "https://~@h/",
		"x https://u:p@w@h/a@b y":          "x https://~@h/a@b y",
		"https://h/?token=abc&q=1":         "https://h/?token=~&q=1",
		"a;password=hunter2":               "a;password=~",
		"a&password=hunter2;b=1":           "a&password=~;b=1",
		"https%3A%2F%2Fh%2F%3Ftoken%3Dabc": "https://h/?token=~",
		"password%253Dhunter2":             "password=~",
		"password=one&u=token%3Dtwo":       "password=~&u=token=~",
		`{user[password]=hunter2}`:         `{user[password]=~}`,
		// These hold no secret.
		"a=b":                    "a=b",
		"YWJj==":                 "YWJj==",
		"status=1&token_type=x":  "status=1&token_type=x",
		"ann@example.org":        "ann@example.org",
		"100%":                   "100%",
		"https://h/@ann?q=a%20b": "https://h/@ann?q=a%20b",
		"password=":              "password=",
	} {
		var p Params
		p.Add(rules.Param{Source: rules.Query, Name: "q", Value: value})
		p.Mask(&rules.Secrets{})
		p.Mask(&rules.Secrets{}) // once
		p.Sort()
		if got, _ := p.AppendAll(nil, &rules.Secrets{}); string(got) != "q="+string(base.AppendEscaped(nil, want)) {
			t.Errorf("%q makes %s, want the value %s", value, got, want)
		}
		if got := p.At(0); got != (rules.Param{Source: rules.Query, Name: "q", Value: value}) {
			t.Errorf("At is %+v, want the value as it came, %q", got, value)
		}
	}
	// A parameter whose name is secret makes no key, whatever its value.
	var p Params
	p.AddQuery("token=https://u:p@h/")
	p.Mask(&rules.Secrets{})
	if got, n := p.AppendAll(nil, &rules.Secrets{}); n != 0 {
		t.Errorf("a secret name makes %s", got)
	}
}

func TestSecretsInPaths(t *testing.T) {
	for path, want := range map[string]string{
		"/x;password=hunter2/y":        "/x;password=~/y",
		"/x;a=1;token=abc;b=2":         "/x;a=1;token=~;b=2",
		"/token=abc/x":                 "/token=~/x",
		"/reset/password/hunter2":      "/reset/password/~",
		"/password-reset-token/abc/ok": "/password-reset-token/~/ok",
		"/session/1/token/2":           "/session/~/token/~",
		"/password/token/x":            "/password/~/x",
		// These hold no secret.
		"/": "/", "": "", "*": "*", "/auth/login": "/auth/login", "/code/go": "/code/go", "/oauth/token": "/oauth/token",
		"/token/": "/token/", "/a=b;c=d//e": "/a=b;c=d//e", "/tokens/7": "/tokens/7",
	} {
		if got := string(MaskPath(&rules.Secrets{}, []byte(path))); got != want {
			t.Errorf("%s makes %s, want %s", path, got, want)
		}
	}
}

// However often a secret's value is escaped, up to the limit, and whatever surrounds it, no key
// contains it.
func TestNoKeyHasASecretWithinAValue(t *testing.T) {
	const secret = "hunter2hunter2"
	rapid.Check(t, func(t *rapid.T) {
		around := rapid.StringMatching(`[a-z0-9&;/?#, ]{0,6}`)
		value := around.Draw(t, "before") + rapid.SampledFrom([]string{"&", ";", "?", "/", " "}).Draw(t, "between") +
			rapid.SampledFrom([]string{"password=" + secret, "id_token=" + secret, "https://ann:" + secret + "@host/", "user[pwd]=" + secret}).Draw(t, "holds") +
			rapid.SampledFrom([]string{"", "&q=1", ";x", " y"}).Draw(t, "after")
		for range rapid.IntRange(0, maxEscapes-1).Draw(t, "escapes") {
			value = string(base.AppendEscaped(nil, value))
		}
		var p Params
		p.AddQuery("q=" + string(base.AppendEscaped(nil, value)) + "&b=1")
		p.Mask(&rules.Secrets{})
		p.Sort()
		if got, n := p.AppendAll(nil, &rules.Secrets{}); n != 2 || strings.Contains(string(got), secret) {
			t.Fatalf("%q makes %s", value, got)
		}
		if got, _, _, ok := AppendPlain(make([]byte, 0, 200), "q="+string(base.AppendEscaped(nil, value)), nil, &rules.Secrets{}); ok && strings.Contains(string(got), secret) {
			t.Fatalf("%q makes %s without Params", value, got)
		}
	})
}
