package rules

import (
	"strings"
	"testing"
)

const redactKey = "0123456789abcdef0123456789abcdef"

func redaction(t testing.TB, names ...Param) *Redaction {
	t.Helper()
	x, err := NewRedaction(Redact{Names: names, Key: []byte(redactKey)})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestRedacts(t *testing.T) {
	x := redaction(t, Param{Name: "e-mail"}, Param{Header, "x-api-key", ""}, Param{JSON, "user.name", ""}, Param{Name: "_"})
	for _, test := range []struct {
		source Source
		name   string
		want   bool
	}{
		{Query, "e-mail", true}, {Query, "Email", true}, {Query, "user[E_Mail]", true}, {Query, "user.email.x", true},
		{Query, "emails", false}, {Query, "mail", false}, {Query, "", false}, {Query, "[]", false},
		{Path, "e-mail", false}, {Header, "e-mail", false}, {Form, "e-mail", false},
		{Header, "x-api-key", true}, {Header, "X-API-Key", true}, {Query, "x-api-key", false},
		{JSON, "user.name", true}, {JSON, "name", false}, {JSON, "user", false},
		{Query, "_", true}, {Query, "__", false},
	} {
		if got := x.Redacts(test.source, test.name); got != test.want {
			t.Errorf("%v:%s is redacted: %v, want %v", test.source, test.name, got, test.want)
		}
	}
	if (*Redaction)(nil).Redacts(Query, "q") || (*Redaction)(nil).KeyID() != "" {
		t.Error("a nil Redaction redacts")
	}
	if n := testing.AllocsPerRun(100, func() { x.Redacts(Query, "user[E_Mail]") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestNewRedactionRefuses(t *testing.T) {
	if x, err := NewRedaction(Redact{Key: []byte("short")}); x != nil || err != nil {
		t.Errorf("no names: %v, %v", x, err)
	}
	names := []Param{{Name: "q"}}
	for key, want := range map[string]string{"": "needs a key", "0123456789abcde": "15 bytes, want 16"} {
		if _, err := NewRedaction(Redact{Names: names, Key: []byte(key)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a key of %d bytes: %v, want %q", len(key), err, want)
		}
	}
	one := redaction(t, names...)
	other, err := NewRedaction(Redact{Names: names, Key: []byte("fedcba9876543210")})
	if err != nil || one.KeyID() == other.KeyID() || len(one.KeyID()) != 8 || one.KeyID() != redaction(t, names...).KeyID() {
		t.Errorf("key ids %q and %q, %v", one.KeyID(), other.KeyID(), err)
	}
}
