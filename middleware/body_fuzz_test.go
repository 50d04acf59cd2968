package middleware

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/rules"
)

// readValues reads the request's body as Check does, and returns the distinct values that the
// guard's rules find of one parameter.
func readValues(f *fixture, r *http.Request, p rules.Param) (values []string, unread bool) {
	in := Request{Context: r.Context(), Method: r.Method, Path: "/s", Query: r.URL.RawQuery, Pattern: "/s", HTTP: r}
	route := f.routeOf(&in)
	req := f.newRequest(&in, route, false)
	defer req.recycle()
	list := req.loadParams(&route.rules[0])
	for i := range list.Len() {
		if q := list.At(i); q.Source == p.Source && q.Name == p.Name {
			values = append(values, strings.Clone(q.Value))
		}
	}
	slices.Sort(values)
	return slices.Compact(values), req.body.state == bodyUnread
}

// pieces is a reader that returns a few bytes at a time, and an error at the end.
type pieces struct {
	text []byte
	size int
	err  error
}

func (p *pieces) Read(dst []byte) (int, error) {
	if len(p.text) == 0 {
		return 0, p.err
	}
	n := copy(dst, p.text[:min(len(p.text), p.size)])
	p.text = p.text[n:]
	if len(p.text) == 0 && p.size%2 == 0 { // with the last bytes, as may be
		return n, p.err
	}
	return n, nil
}

func (*pieces) Close() error { return nil }

var errFuzz = errors.New("the client has gone")

const fuzzMax = 512

func fuzzFixture(tb testing.TB, by string) (*fixture, rules.Param) {
	rule := hotRule(tb, "r", "/s", byNames(by), 0, 0)
	return newFixture(tb, rules.Rules{Rules: []rules.Rule{rule}, Bodies: rules.Bodies{Max: fuzzMax}}), rule.By.Names[0]
}

// checkReplay compares the body that the handler reads with the bytes that the client sent.
func checkReplay(t *testing.T, f *fixture, r *http.Request, want []byte, end error) {
	t.Helper()
	got, err := io.ReadAll(r.Body)
	if errors.Is(end, io.EOF) {
		end = nil
	}
	if !bytes.Equal(got, want) || !errors.Is(err, end) {
		t.Errorf("the handler reads %q, %v; want %q, %v", got, err, want, end)
	}
	if n := f.bodies.Held.Load(); n != 0 {
		t.Errorf("%d bytes are held after they were read", n)
	}
}

// A rule finds the same values in a form as net/http. If net/http fails, the rule finds at least
// as many, or the key for unreadable bodies.
func FuzzForm(f *testing.F) {
	multipart := "--x\r\nContent-Disposition: form-data; name=user\r\n\r\nann\r\n--x\r\nContent-Disposition: form-data; name=\"user\"; filename=f\r\n\r\nbob\r\n--x--"
	for _, seed := range []string{"user=ann&user=bob", "u%73er=%zz;&user=a+b", "user", "&&=&user==", multipart, multipart[:60], strings.Repeat("user=a&", 100), "", "user=\xff"} {
		for _, contentType := range []string{formType, "multipart/form-data; boundary=x", formType + "; charset=x;=", "multipart/form-data; boundary", jsonType, ""} {
			f.Add(contentType, "user=bob&x", []byte(seed), 3, false)
			f.Add(contentType, "", []byte(seed), 1000, len(seed)%2 == 0)
		}
	}
	fix, p := fuzzFixture(f, "form:user")
	f.Fuzz(func(t *testing.T, contentType, query string, body []byte, size int, fails bool) {
		end := io.EOF
		if fails {
			end = errFuzz
		}
		request := func() *http.Request {
			r := httptest.NewRequest("POST", "/s", nil)
			r.URL.RawQuery = query
			r.Header["Content-Type"] = []string{contentType}
			r.Body, r.ContentLength = &pieces{slices.Clone(body), max(size, 1), end}, -1
			return r
		}
		r, reference := request(), request()
		got, unread := readValues(fix, r, p)
		checkReplay(t, fix, r, body, end)
		err := reference.ParseMultipartForm(1 << 20)
		if errors.Is(err, http.ErrNotMultipart) { // which it says of other forms as well
			err = request().ParseForm()
		}
		want := slices.Clone(reference.Form["user"])
		slices.Sort(want)
		want = slices.Compact(want)
		switch {
		case unread && err == nil && len(body) <= fuzzMax:
			t.Errorf("%q of %q is unread, and net/http finds %q", contentType, body, want)
		case unread || len(body) > fuzzMax:
		case err == nil && !slices.Equal(got, want):
			t.Errorf("%q of %q and %q: %q, want %q", contentType, query, body, got, want)
		case !isSubset(want, got):
			t.Errorf("%q of %q and %q: %q are not all of %q, beside %v", contentType, query, body, got, want, err)
		}
	})
}

func isSubset(part, all []string) bool {
	for _, s := range part {
		if !slices.Contains(all, s) {
			return false
		}
	}
	return true
}

// A rule finds the same values in JSON as encoding/json, in either case of names, and in each
// member of a repeated name.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":{"b":1}}`, `{"a":[{"b":"x"},{"B":"y"}],"A":{"b":true}}`, `{"a":[{"b":null},[{"b":1.0}]]}`, `{"\u0061":{"b":"\ud800\n"}}`, `[{"a":1}] `, `{"a":`, `{"a":{"b":1}}x`,
		"\ufeff{}", `{"a":[{"b":-0e1},2 , {"b" :"é\xff"}]}`, `"a"`, strings.Repeat("[", 300), strings.Repeat(`{"a":[`, 60) + `{"b":1}` + strings.Repeat("]}", 60), ` `, `{"a":[{"b":1,"b":"1","b":"\"]}"}]}`, `{"K":1}`,
	} {
		for i := range fuzzPaths {
			f.Add(uint8(i), []byte(seed), 1+i*7, i == 2)
		}
	}
	var fixtures []*fixture
	var params []rules.Param
	for _, path := range fuzzPaths {
		fix, p := fuzzFixture(f, "json:"+path.name)
		fixtures, params = append(fixtures, fix), append(params, p)
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte, size int, fails bool) {
		i := int(which) % len(fuzzPaths)
		end := io.EOF
		if fails {
			end = errFuzz
		}
		r := httptest.NewRequest("POST", "/s", nil)
		r.Header["Content-Type"] = []string{"application/x+json"}
		r.Body, r.ContentLength = &pieces{slices.Clone(body), max(size, 1), end}, -1
		got, unread := readValues(fixtures[i], r, params[i])
		checkReplay(t, fixtures[i], r, body, end)

		var decoded any
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.UseNumber()
		err := decoder.Decode(&decoded)
		if err == nil {
			if _, more := decoder.Token(); more != io.EOF {
				err = errors.New("something follows")
			}
		}
		if want := (err != nil && len(body) > 0) || fails || len(body) > fuzzMax; unread != want {
			t.Fatalf("%q: unread is %v, and encoding/json says %v", body, unread, err)
		}
		if unread || err != nil {
			if len(got) > 0 {
				t.Errorf("%q has values: %q", body, got)
			}
			return
		}
		if some := valuesOf(nil, decoded, fuzzPaths[i].steps); !isSubset(some, got) { // the last of each name
			t.Errorf("%s of %q: %q, want at least %q", fuzzPaths[i].name, body, got, some)
		}
		want := tokensOf(t, body, fuzzPaths[i].steps)
		slices.Sort(want)
		if want = slices.Compact(want); !slices.Equal(got, want) {
			t.Errorf("%s of %q: %q, want %q", fuzzPaths[i].name, body, got, want)
		}
	})
}

// fuzzPaths are paths and their steps. The step "[]" stands for each element.
var fuzzPaths = []struct {
	name  string
	steps []string
}{{"a.b", []string{"a", "b"}}, {"a.*.b", []string{"a", "[]", "b"}}, {"*.a", []string{"[]", "a"}}, {"k", []string{"k"}}, {`a\.b`, []string{"a.b"}}}

// valuesOf collects the values at steps in a value that encoding/json has decoded.
func valuesOf(found []string, v any, steps []string) []string {
	if len(steps) == 0 {
		if text, ok := scalarOf(v); ok {
			found = append(found, text)
		}
		return found
	}
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if steps[0] != "[]" && strings.EqualFold(name, steps[0]) {
				found = valuesOf(found, inner, steps[1:])
			}
		}
	case []any:
		for _, inner := range v {
			if steps[0] == "[]" {
				found = valuesOf(found, inner, steps[1:])
			}
		}
	}
	return found
}

func scalarOf(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		if v {
			return "true", true
		}
		return "false", true
	}
	return "", false
}

// tokensOf collects them from the tokens of encoding/json, which include each member of a repeated
// name.
func tokensOf(t *testing.T, body []byte, steps []string) (found []string) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if len(body) == 0 {
		return nil
	}
	next := func() json.Token {
		token, err := decoder.Token()
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	var walk func(steps []string, on bool)
	walk = func(steps []string, on bool) {
		token := next()
		switch token {
		case json.Delim('{'):
			for decoder.More() {
				name, _ := next().(string)
				leads := on && len(steps) > 0 && steps[0] != "[]" && strings.EqualFold(name, steps[0])
				walk(steps[min(1, len(steps)):], leads)
			}
			next()
		case json.Delim('['):
			for decoder.More() {
				walk(steps[min(1, len(steps)):], on && len(steps) > 0 && steps[0] == "[]")
			}
			next()
		default:
			if text, ok := scalarOf(token); ok && on && len(steps) == 0 {
				found = append(found, text)
			}
		}
	}
	walk(steps, true)
	return found
}
