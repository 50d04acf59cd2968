package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/rules"
)

func TestReadRedactKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const all = "rules:\n  - {id: a, match: {route: /s}, by: [token], hot: 1/s}\n"
	parse := func(secrets string) *File {
		t.Helper()
		f, err := Parse("f", []byte(secrets+all))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	t.Setenv("TEST_REDACT_KEY", "of the environment\n")
	f := parse("secrets: {redact: [token, 'cookie:session'], redact_key_env: TEST_REDACT_KEY}\n")
	if want := []rules.Param{{Name: "token"}, {Source: rules.Cookie, Name: "session"}}; !slices.Equal(f.Rules.Redact.Names, want) {
		t.Errorf("names %+v, want %+v", f.Rules.Redact.Names, want)
	}
	if err := f.ReadRedactKey(); err != nil || string(f.Rules.Redact.Key) != "of the environment" {
		t.Errorf("%q, %v", f.Rules.Redact.Key, err)
	}
	f = parse("secrets: {redact: [token], redact_key_file: " + path + "}\n")
	for _, test := range []struct{ text, want string }{
		{"", "is empty"}, {"short\n", "5 bytes, want 16 at least"}, {"0123456789abcdef\n", ""},
	} {
		write(test.text)
		err := f.ReadRedactKey()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) || (len(f.Rules.Redact.Key) > 0) != (err == nil) {
			t.Errorf("%q: %v and a key of %d bytes, want %q", test.text, err, len(f.Rules.Redact.Key), test.want)
		}
	}
	f = parse("secrets: {except: [token]}\n")
	if err := f.ReadRedactKey(); err != nil || f.Rules.Redact.Key != nil {
		t.Errorf("a file without redact: %v", err)
	}
}
