package base

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadSecret(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("TEST_SECRET", "of env\n")
	t.Setenv("TEST_EMPTY", "")
	for _, test := range []struct{ file, env, want, err string }{
		{"", "", "", ""},
		{write("one", "of file\r\n"), "", "of file", ""},
		{write("two", " a b \n\nc\n\n"), "", " a b \n\nc", ""},
		{"", "TEST_SECRET", "of env", ""},
		{write("empty", "\n"), "", "", "empty is empty"},
		{filepath.Join(dir, "none"), "", "", "none"},
		{"", "TEST_EMPTY", "", "no TEST_EMPTY"},
		{write("both", "hush"), "TEST_SECRET", "", "want one"},
	} {
		got, err := ReadSecret(test.file, test.env)
		if got != test.want || (err == nil) != (test.err == "") || err != nil && (!strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), "hush")) {
			t.Errorf("%q, %q: %q, %v", test.file, test.env, got, err)
		}
	}
}
