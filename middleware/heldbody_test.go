package middleware

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

// A failed read is reported to the handler at the same place.
func TestErrorsAreReplayed(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		body func() io.Reader
		want Unread
	}{
		"at once": {func() io.Reader { return iotest.ErrReader(broken) }, Unread{Failed: 1}},
		"later":   {func() io.Reader { return io.MultiReader(strings.NewReader("user=ann"), iotest.ErrReader(broken)) }, Unread{Failed: 1}},
		"with the last": {func() io.Reader {
			return iotest.DataErrReader(io.MultiReader(strings.NewReader("user=ann"), iotest.ErrReader(broken)))
		}, Unread{Failed: 1}},
		"once": {func() io.Reader { return iotest.TimeoutReader(strings.NewReader("user=ann")) }, Unread{Failed: 1}},
		"behind the limit": {func() io.Reader {
			return io.MultiReader(strings.NewReader(strings.Repeat("x", 70_000)), iotest.ErrReader(broken))
		}, Unread{TooLarge: 1}},
		"a smaller limit":   {func() io.Reader { return http.MaxBytesReader(nil, io.NopCloser(strings.NewReader("user=ann")), 4) }, Unread{TooLarge: 1}},
		"nothing, for ever": {func() io.Reader { return &idle{n: 1000, Reader: strings.NewReader("user=ann")} }, Unread{Failed: 1}},
	} {
		wantText, wantErr := io.ReadAll(test.body())
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "POST /s", byNames("form:user"), 1, 1)}})
		req, body := post(formType, "")
		req.HTTP.ContentLength, body.Reader = -1, test.body()
		f.Check(req)
		text, err := io.ReadAll(req.HTTP.Body)
		if string(text) != string(wantText) || !sameError(err, wantErr) || f.Stats().Unread != test.want {
			t.Errorf("%s: %d bytes, %v, %+v; want %d, %v", name, len(text), err, f.Stats().Unread, len(wantText), wantErr)
		}
	}
}

func sameError(a, b error) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error())
}

// idle is a reader that returns nothing n times.
type idle struct {
	n int
	io.Reader
}

func (r *idle) Read(p []byte) (int, error) {
	if r.n--; r.n >= 0 {
		return 0, nil
	}
	return r.Reader.Read(p)
}

// The guard stops reading a slow body when the request's context ends, and the handler still gets
// all of it.
func TestContextEndsARead(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "POST /s", byNames("form:user"), 1, 1)}})
	req, body := post(formType, "")
	req.Context, req.HTTP.ContentLength = ctx, -1
	pipe, client := io.Pipe()
	body.Reader = pipe
	go func() {
		io.WriteString(client, "user=")
		cancel()
		io.WriteString(client, "a") // whatever comes first, this read is the last
		io.WriteString(client, "nn")
		client.Close()
	}()
	f.Check(req)
	if text, err := io.ReadAll(req.HTTP.Body); string(text) != "user=ann" || err != nil || f.Stats().Unread != (Unread{Failed: 1}) {
		t.Errorf("%q, %v, %+v", text, err, f.Stats().Unread)
	}
	late, body := post(formType, "user=ann")
	late.Context = ctx
	if f.Check(late); body.reads > 0 || f.Stats().Unread != (Unread{Failed: 2}) {
		t.Errorf("after the end: %d reads, %+v", body.reads, f.Stats().Unread)
	}
}

// The held bytes of all requests together are bounded, and are released by whatever ends their
// use.
func TestHeldBytesAreBounded(t *testing.T) {
	const size = 10_000
	rules := rules.Rules{
		Rules:  []rules.Rule{hotRule(t, "r", "POST /s", byNames("form:user"), 1, 1)},
		Bodies: rules.Bodies{Max: 1 << 15, Total: 1 << 16},
	}
	for name, end := range map[string]func(Request, context.CancelFunc){
		"read":  func(r Request, _ context.CancelFunc) { io.Copy(io.Discard, r.HTTP.Body) },
		"close": func(r Request, _ context.CancelFunc) { r.HTTP.Body.Close() },
		"end":   func(_ Request, cancel context.CancelFunc) { cancel() },
	} {
		f := newFixture(t, rules)
		var ends []func()
		for range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			req, _ := post(formType, "user=ann&x="+strings.Repeat("x", size))
			req.Context = ctx
			f.Check(req)
			ends = append(ends, func() { end(req, cancel); end(req, cancel); cancel() })
			if held := f.bodies.Held.Load(); held > 1<<16 {
				t.Fatalf("%s: %d bytes are held", name, held)
			}
		}
		s := f.Stats()
		if s.Bodies < 3 || s.Bodies > 6 || s.Unread != (Unread{NoRoom: 100 - s.Bodies}) {
			t.Errorf("%s: %d bodies, %+v", name, s.Bodies, s.Unread)
		}
		for _, end := range ends {
			end()
		}
		// A context runs its callback in a goroutine.
		testenv.Eventually(t, name+": no bytes are held after all have ended", func() bool { return f.bodies.Held.Load() == 0 })
		req, _ := post(formType, "user=ann")
		if f.Check(req); f.Stats().Bodies != s.Bodies+1 {
			t.Errorf("%s: there is no room after all have ended", name)
		}
	}
}

// After its handler has returned or panicked, a request holds no bytes, even if the handler read
// nothing.
func TestHandlerGivesBack(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{limitRule(t, "r", "POST /s", byNames("form:user"), 1, 2)}})
	f.heat(t)
	inside := int64(0)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /s", func(_ http.ResponseWriter, r *http.Request) {
		inside = f.bodies.Held.Load()
		if r.URL.RawQuery == "panic" {
			panic(http.ErrAbortHandler)
		}
	})
	for i, query := range []string{"", "panic", "refused"} {
		inside = 0
		req, _ := post(formType, "user=ann")
		req.HTTP.URL.RawQuery = query
		func() {
			defer func() { _ = recover() }()
			f.Handler(mux).ServeHTTP(httptest.NewRecorder(), req.HTTP)
		}()
		if held := f.bodies.Held.Load(); held != 0 || (inside > 0) != (i < 2) {
			t.Errorf("%q: %d bytes are held, %d were inside", query, held, inside)
		}
	}
}

// A request whose body's Read panics passes, and loses nothing.
func TestBodyThatPanics(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "POST /s", byNames("form:user"), 1, 1)}})
	req, body := post(formType, "")
	req.HTTP.ContentLength, body.Reader = -1, io.MultiReader(strings.NewReader("user="), panickingReader{}, strings.NewReader("ann"))
	if d := f.Check(req); !d.Allowed || d.Reason != rules.ReasonOpen || f.Stats().Panics != 1 {
		t.Errorf("%+v", d)
	}
	head := make([]byte, 5)
	if _, err := io.ReadFull(req.HTTP.Body, head); !bytes.Equal(head, []byte("user=")) || err != nil {
		t.Errorf("%q, %v", head, err)
	}
}

type panickingReader struct{}

func (panickingReader) Read([]byte) (int, error) { panic("read") }

// Floods of fields and of values take bounded room and time.
func TestFloodsOfFields(t *testing.T) {
	ruleset := rules.Rules{
		Rules:  []rules.Rule{hotRule(t, "r", "POST /s", byNames("form:user", "json:a.*.id"), 0, 0)},
		Bodies: rules.Bodies{Max: 1 << 20},
	}
	var fields, ids, parts strings.Builder
	for i := range 10_000 {
		v := string(rune('a'+i%26)) + strings.Repeat("v", i%40)
		fields.WriteString("user=" + v + "&" + v + "=" + v + "&")
		ids.WriteString(`{"id":"` + v + `\u0061"},`)
		if i < 2_000 {
			parts.WriteString("--x\r\nContent-Disposition: form-data; name=user\r\n\r\n" + v + "\r\n")
		}
	}
	for name, test := range map[string]struct{ contentType, text string }{
		"form": {formType, fields.String()}, "JSON": {jsonType, `{"a":[` + ids.String() + `{}]}`}, "multipart": {"multipart/form-data; boundary=x", parts.String() + "--x--"},
		"fields without a value": {formType, strings.Repeat("a&", 1<<19-10) + "user"},
		"deep":                   {jsonType, `{"a":[{"id":1}],"b":` + strings.Repeat(`{"a":[`, 4000) + strings.Repeat("]}", 4000) + "}"},
	} {
		f := newFixture(t, ruleset)
		req, _ := post(test.contentType, test.text)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		f.Check(req)
		if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 12<<20 {
			t.Errorf("%s: %d bytes were allocated for a body of %d", name, after.TotalAlloc-before.TotalAlloc, len(test.text))
		}
		if took := time.Since(start); took > 2*time.Second { // some 20 ms
			t.Errorf("%s: %v", name, took)
		}
		keys := f.keys()
		if s := f.Stats(); s.Bodies != 1 || len(keys) == 0 || len(keys) > rules.MaxKeys+1 || len(keys) > 1 && !slices.Contains(keys, "r POST /s?~more") {
			t.Errorf("%s: %d keys, %+v", name, len(keys), s)
		}
	}
}
