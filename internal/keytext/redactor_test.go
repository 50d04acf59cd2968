package keytext

import (
	"slices"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/rules"
)

const testKey = "0123456789abcdef0123456789abcdef"

func testRedaction(t testing.TB, names ...rules.Param) *rules.Redaction {
	t.Helper()
	x, err := rules.NewRedaction(rules.Redact{Names: names, Key: []byte(testKey)})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// The texts are those of
//
//	printf '%s' 'header:x-api-key=abc' | openssl dgst -sha256 -hmac "$key" | cut -c1-32
func TestRedactedValuesAreThoseOfOpenSSL(t *testing.T) {
	redactor := NewRedactor(testRedaction(t, rules.Param{Name: "q"}))
	for range 2 { // a state that is used again is that of a new one
		for _, test := range []struct {
			param rules.Param
			want  string
		}{
			{rules.Param{Name: "q", Value: "phone"}, "hmac-0eca1a85a9a4b838c518da1c55002e2f"},
			{rules.Param{Source: rules.Header, Name: "x-api-key", Value: "abc"}, "hmac-8e11cd0de0d9ac7e04ae0c6c53b4fb12"},
			{rules.Param{Source: rules.Cookie, Name: "session", Value: "a b="}, "hmac-ccbb109ddca09fde1a1a59f82b9367f5"},
			{rules.Param{Source: rules.Path, Name: "id", Value: "7"}, "hmac-0392e10bf0c0ca293b3fe193fd41ff98"},
			{rules.Param{Name: "query:q", Value: "phone"}, "hmac-32032340aefbd9294236ad501a27c5c5"},
		} {
			if got := string(redactor.Append([]byte("x"), test.param)); got != "x"+test.want {
				t.Errorf("%+v is %s, want x%s", test.param, got, test.want)
			}
		}
	}
}

// Keys have the redacted text in the order of keys, and nothing else changes.
func TestParamsRedact(t *testing.T) {
	x := NewRedactor(testRedaction(t, rules.Param{Name: "token"}, rules.Param{Source: rules.Path, Name: "id"}))
	value := func(source rules.Source, name, value string) string {
		return string(x.Append(nil, rules.Param{Source: source, Name: name, Value: value}))
	}
	var p Params
	for range 2 { // a Params is used again
		p.Reset()
		p.AddQuery("token=b&q=1&token=a&token=b&password=x&a%20b=2")
		p.Redact(x)
		p.AddPath("id", "7%2F8")
		p.Redact(x)
		p.Sort()
		tokens := []string{"token=" + value(rules.Query, "token", "a"), "token=" + value(rules.Query, "token", "b"), "token=" + value(rules.Query, "token", "b")}
		slices.Sort(tokens)
		want := "a%20b=2&path:id=" + value(rules.Path, "id", "7/8") + "&q=1&" + strings.Join(tokens, "&")
		text, n := p.AppendAll(nil, &rules.Secrets{})
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
	x := testRedaction(t, rules.Param{Name: "q"})
	var p Params
	const n = maxRedacted + 100
	for i := range n {
		p.Add(rules.Param{Name: "q", Value: strings.Repeat("v", i)})
	}
	p.Redact(NewRedactor(x))
	p.Sort()
	text, _ := p.AppendAll(nil, &rules.Secrets{})
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

// A redacted text is canonical, so the aggregator publishes the key that guards look up.
func TestRedactedTextIsCanonical(t *testing.T) {
	x := NewRedactor(testRedaction(t, rules.Param{Name: "q"}, rules.Param{Source: rules.Header, Name: "x-api-key"}))
	route, err := rules.ParseRoute("*")
	if err != nil {
		t.Fatal(err)
	}
	rule := &rules.Rule{Match: rules.Match{Route: route}, By: rules.By{Kind: rules.ByAll}}
	var room Params
	text := AppendCanonical(nil, rule, "GET /search?q=b&q=a&header:X-API-Key=%61&z=1", &room, x)
	if strings.Contains(string(text), "=a") || strings.Contains(string(text), "=b") || strings.Count(string(text), "=hmac-") != 3 || room.Len() != 0 {
		t.Errorf("%s", text)
	}
	if again, changed := NewCanonicalizer(rule).Append(nil, text); changed {
		t.Errorf("%s is %s in canonical form", text, again)
	}
}
