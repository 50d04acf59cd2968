package hotparam

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSecretsHide(t *testing.T) {
	var defaults Secrets
	own := NewSecrets([]string{"PIN", "2fa", "card_number", "пароль", "Ключ"}, []string{"Session", "api-key"})
	long := NewSecrets([]string{strings.Repeat("a", 70) + "b"}, nil)
	for _, test := range []struct {
		secrets *Secrets
		name    string
		want    bool
	}{
		{&defaults, "Authorization", true},
		{&defaults, "ACCESS-TOKEN", true},
		{&defaults, "accessToken", true},
		{&defaults, "_token_", true},
		{&defaults, "to--ken", true},
		{&defaults, "user[password]", true},
		{&defaults, "user.password", true},
		{&defaults, "a[b][api_key]", true},
		{&defaults, "password[0]", true},
		{&defaults, "[token", true},
		{&defaults, "token.x", true},
		{&defaults, strings.Repeat("x", 1000) + ".token", true},
		{&defaults, strings.Repeat("_", 1000) + "token", true},
		{&defaults, "", false},
		{&defaults, "_", false},
		{&defaults, "..", false},
		{&defaults, "tokens", false},
		{&defaults, "q", false},
		{&defaults, "passwordhint", false},
		{&defaults, "token" + strings.Repeat("x", 1000), false},
		{&defaults, "user[name]", false},
		{&own, "pin", true},
		{&own, "P-I-N", true},
		{&own, "2FA", true},
		{&own, "cardNumber", true},
		{&own, "пароль", true},
		{&long, strings.Repeat("a", 70) + "b", true},
		{&long, strings.Repeat("a", 63), false},
		{&own, "Ключ", true},
		{&own, "token", true},
		{&own, "session", false},
		{&own, "apikey", false},
		{&own, "q", false},
	} {
		if got := test.secrets.Hides(test.name); got != test.want {
			t.Errorf("%q is hidden: %v", test.name, got)
		}
	}
}

// Every default name is hidden in any case, with "-" and "_" anywhere, and as a
// part of a structured name.
func TestSecretsHideEveryWayToWriteAName(t *testing.T) {
	var s Secrets
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(defaultSecrets).Draw(t, "name")
		var b strings.Builder
		for _, c := range []byte(strings.ReplaceAll(name, "_", "")) {
			b.WriteString(rapid.SampledFrom([]string{"", "", "", "-", "_", "-_"}).Draw(t, "between"))
			b.WriteString(rapid.SampledFrom([]string{string(c), strings.ToUpper(string(c))}).Draw(t, "case"))
		}
		form := rapid.SampledFrom([]string{"%", "user[%]", "user.%", "%[]", "a[%].b", "%.x"}).Draw(t, "form")
		if written := strings.Replace(form, "%", b.String(), 1); !s.Hides(written) {
			t.Fatalf("%q is not hidden", written)
		}
	})
}

// The quick look never passes a name that the thorough one hides.
func TestQuickLookPassesNoSecret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		extra := rapid.SliceOfN(rapid.OneOf(rapid.StringMatching(`[a-zA-Z0-9_-]{0,6}`), anyBytes()), 0, 4).Draw(t, "extra")
		except := rapid.SliceOfN(rapid.SampledFrom(append([]string{"nothing"}, defaultSecrets...)), 0, 3).Draw(t, "except")
		s := NewSecrets(extra, except)
		name := rapid.OneOf(
			rapid.SampledFrom(append(append([]string{""}, defaultSecrets...), extra...)),
			rapid.StringMatching(`[a-cpt_-]{0,3}(token|password)?[a-cpt_.\[\]-]{0,3}`),
			anyBytes(),
		).Draw(t, "name")
		if s.set.holds(name) && !s.Hides(name) {
			t.Fatalf("%q is a secret, and was passed", name)
		}
	})
}

// A name that was asked to be hidden is hidden when it comes just so.
func TestExtraSecretsAreHiddenAsTheyAreGiven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.StringMatching(`[a-zA-ZÀ-ÿА-я0-9_ :/-]{1,100}`), anyBytes()).Draw(t, "name")
		if strings.ContainsAny(name, "[].") || strings.Trim(name, "-_") == "" {
			t.Skip("no single name")
		}
		s := NewSecrets([]string{name}, nil)
		if !s.Hides(name) || !s.Hides("form["+name+"]") {
			t.Fatalf("%q is not hidden", name)
		}
	})
}

func TestSecretsDoNotAllocate(t *testing.T) {
	var s Secrets
	if n := testing.AllocsPerRun(100, func() {
		s.Hides("q")
		s.Hides("user[Pass-Word]")
		s.Hides("tokens")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSecretsHides(b *testing.B) {
	var s Secrets
	for _, name := range []string{"q", "page", "access_token", "filter[size]"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Hides(name)
			}
		})
	}
}
