package rules

import (
	"slices"
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

// The texts are those of
//
//	printf '%s' 'header:x-api-key=abc' | openssl dgst -sha256 -hmac "$key" | cut -c1-32
func TestRedactedValuesAreThoseOfOpenSSL(t *testing.T) {
	redactor := redaction(t, Param{Name: "q"}).NewRedactor()
	for range 2 { // a state that is used again is that of a new one
		for _, test := range []struct {
			param Param
			want  string
		}{
			{Param{Name: "q", Value: "phone"}, "hmac-0eca1a85a9a4b838c518da1c55002e2f"},
			{Param{Header, "x-api-key", "abc"}, "hmac-8e11cd0de0d9ac7e04ae0c6c53b4fb12"},
			{Param{Cookie, "session", "a b="}, "hmac-ccbb109ddca09fde1a1a59f82b9367f5"},
			{Param{Path, "id", "7"}, "hmac-0392e10bf0c0ca293b3fe193fd41ff98"},
			{Param{Name: "query:q", Value: "phone"}, "hmac-32032340aefbd9294236ad501a27c5c5"},
		} {
			if got := string(redactor.Append([]byte("x"), test.param)); got != "x"+test.want {
				t.Errorf("%+v is %s, want x%s", test.param, got, test.want)
			}
		}
	}
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

// Keys have the redacted text in the order of keys, and nothing else changes.
func TestParamsRedact(t *testing.T) {
	x := redaction(t, Param{Name: "token"}, Param{Path, "id", ""}).NewRedactor()
	value := func(source Source, name, value string) string {
		return string(x.Append(nil, Param{source, name, value}))
	}
	var p Params
	for range 2 { // a Params is used again
		p.Reset()
		p.AddQuery("token=b&q=1&token=a&token=b&password=x&a%20b=2")
		p.Redact(x)
		p.AddPath("id", "7%2F8")
		p.Redact(x)
		p.Sort()
		tokens := []string{"token=" + value(Query, "token", "a"), "token=" + value(Query, "token", "b"), "token=" + value(Query, "token", "b")}
		slices.Sort(tokens)
		want := "a%20b=2&path:id=" + value(Path, "id", "7/8") + "&q=1&" + strings.Join(tokens, "&")
		text, n := p.AppendAll(nil, &Secrets{})
		if string(text) != want || n != 6 {
			t.Errorf("%d parameters\n%s, want\n%s", n, text, want)
		}
		var values []string
		for i := range p.Len() {
			q := p.At(i)
			values = append(values, q.Name+"="+q.Value)
		}
		slices.Sort(values)
		if all := strings.Join(values, " "); all != "a b=2 id=7/8 password=x q=1 token=a token=b token=b" {
			t.Errorf("the parameters are %s", all)
		}
		plain := string(p.AppendPlainText(nil, "GET /u?"+want))
		head, tail := "GET /u?a%20b=2&path:id=7%2F8&q=1&", []string{"token=a", "token=b", "token=b"}
		got := strings.Split(strings.TrimPrefix(plain, head), "&")
		slices.Sort(got)
		if !strings.HasPrefix(plain, head) || !slices.Equal(got, tail) {
			t.Errorf("the plain text is %s", plain)
		}
	}
}

// The cost of one request is bounded: values beyond the bound are not hashed. The parameters keep
// their values.
func TestManyRedactedValues(t *testing.T) {
	x := redaction(t, Param{Name: "q"})
	var p Params
	const n = maxRedacted + 100
	for i := range n {
		p.Add(Param{Name: "q", Value: strings.Repeat("v", i)})
	}
	p.Redact(x.NewRedactor())
	p.Sort()
	text, _ := p.AppendAll(nil, &Secrets{})
	if got := strings.Count(string(text), "q=hmac-more"); got != 100 {
		t.Errorf("%d values were not hashed, want 100", got)
	}
	longest := 0
	for i := range p.Len() {
		longest = max(longest, len(p.At(i).Value))
	}
	if longest != n-1 {
		t.Errorf("the longest value has %d bytes, want %d", longest, n-1)
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

// A redacted text is canonical, so the aggregator publishes the key that guards look up.
func TestRedactedTextIsCanonical(t *testing.T) {
	x := redaction(t, Param{Name: "q"}, Param{Header, "x-api-key", ""}).NewRedactor()
	rule := &Rule{Match: Match{Route: Route{text: "*"}}, By: By{Kind: ByAll}}
	var room Params
	text := rule.AppendCanonical(nil, "GET /search?q=b&q=a&header:X-API-Key=%61&z=1", &room, x)
	if strings.Contains(string(text), "=a") || strings.Contains(string(text), "=b") || strings.Count(string(text), "=hmac-") != 3 || room.Len() != 0 {
		t.Errorf("%s", text)
	}
	if again, changed := NewCanonicalizer(rule).Append(nil, text); changed {
		t.Errorf("%s is %s in canonical form", text, again)
	}
}
