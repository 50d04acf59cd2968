package middleware

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// The benchmarks of bodies measure a whole Check: it reads the body, finds the parameter and
// counts its key, and then the same bytes are read again. They compare it with the decoding
// in a handler: ParseForm, and json.Unmarshal into any and into a struct with the one field.
//
//	go test ./middleware -run - -bench 'Form|JSON' -cpu 1 -count 6

// benchForm returns a form of about size bytes.
func benchForm(size int) string {
	text := "user=ann%40shop.example&csrf=0a1b2c3d&remember=1"
	for i := 0; len(text) < size; i++ {
		text += fmt.Sprintf("&field%d=value+%d", i, i)
	}
	return text
}

// benchJSON returns a document of about size bytes.
func benchJSON(size int) string {
	text := `{"user":{"id":"ann","plan":"gold"},"remember":true,"cart":[`
	for i := 0; len(text) < size; i++ {
		text += fmt.Sprintf(`{"sku":"sku-%d","n":%d,"price":%d.95},`, i, i, i)
	}
	return strings.TrimSuffix(text, ",") + "]}"
}

// benchBody is a body that can be read again.
type benchBody struct{ bytes.Reader }

func (*benchBody) Close() error { return nil }

func benchBodies(b *testing.B, by, contentType string, text func(size int) string, plain map[string]func(b *testing.B, r *http.Request)) {
	for _, size := range []int{200, 8 << 10} {
		content := []byte(text(size))
		header := http.Header{"Content-Type": {contentType}}
		body := new(benchBody)
		request := func() *http.Request {
			body.Reset(content)
			return &http.Request{Method: "POST", Header: header, Body: body, ContentLength: int64(len(content))}
		}
		b.Run(fmt.Sprintf("check/%d", len(content)), func(b *testing.B) {
			g := benchGuard(b, hotRule(b, "r", "POST /s", byNames(by), 3600, 1), "POST /s", "/s", []string{""})
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			b.ReportAllocs()
			for b.Loop() {
				r := request()
				g.Check(Request{Context: ctx, Method: "POST", Path: "/s", Pattern: "POST /s", HTTP: r})
				if n, _ := io.Copy(io.Discard, r.Body); n != int64(len(content)) {
					b.Fatalf("%d bytes", n)
				}
			}
			if s := g.Stats(); s.Bodies == 0 || s.Unread != (Unread{}) {
				b.Fatalf("%+v", s)
			}
		})
		for name, decode := range plain {
			b.Run(fmt.Sprintf("%s/%d", name, len(content)), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					decode(b, request())
				}
			})
		}
	}
}

func BenchmarkForm(b *testing.B) {
	benchBodies(b, "form:user", formType, benchForm, map[string]func(*testing.B, *http.Request){
		"ParseForm": func(b *testing.B, r *http.Request) {
			if err := r.ParseForm(); err != nil || r.PostForm.Get("user") == "" {
				b.Fatal(err)
			}
		},
	})
}

func BenchmarkJSON(b *testing.B) {
	decode := func(b *testing.B, r *http.Request, v any) {
		text, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(text, v)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	benchBodies(b, "json:user.id", jsonType, benchJSON, map[string]func(*testing.B, *http.Request){
		"any": func(b *testing.B, r *http.Request) {
			var v any
			decode(b, r, &v)
		},
		"struct": func(b *testing.B, r *http.Request) {
			var v struct{ User struct{ ID string } }
			decode(b, r, &v)
		},
	})
}
