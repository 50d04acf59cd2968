package hpfiber_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"

	hpfiber "github.com/hotparam/hotparam/adapters/fiber"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/middleware/middlewaretest"
)

const loginRule = `{id: logins, match: {route: "POST /login"}, by: ["form:user"], limit: {rate: 1/1h, burst: 1}}`

// bodyApp returns the address of an app that answers with the form's user and the length of the
// body.
func bodyApp(t *testing.T, stream bool) string {
	guard := middlewaretest.NewGuard(t, loginRule)
	app := fiber.New(fiber.Config{StreamRequestBody: stream, BodyLimit: 1 << 20})
	app.Use(hpfiber.Middleware(guard))
	app.Post("/login", func(c fiber.Ctx) error {
		var body []byte
		if s := c.RequestCtx().RequestBodyStream(); s != nil {
			var err error
			if body, err = io.ReadAll(s); err != nil {
				return err
			}
		} else {
			body = c.Request().Body()
		}
		return c.SendString(string(body))
	})
	return serve(t, app)
}

func post(t *testing.T, target, contentType string, body io.Reader) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// Rules read forms, and handlers get the same bytes, from a stream too.
func TestForms(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprint("stream ", stream), func(t *testing.T) {
			login := bodyApp(t, stream) + "/login"
			for _, user := range []string{"ann", "bob"} {
				text := url.Values{"user": {user}, "pad": {strings.Repeat("x", 20_000)}}.Encode()
				if status, got := post(t, login, form, strings.NewReader(text)); status != 200 || got != text {
					t.Errorf("%s: status %d, %d bytes, want %d", user, status, len(got), len(text))
				}
				if status, _ := post(t, login, form, strings.NewReader(text)); status != 429 {
					t.Errorf("%s, again: status %d", user, status)
				}
			}
			// A stream in chunks is not read, and all such requests share one key.
			chunked := struct{ io.Reader }{strings.NewReader("user=cid")}
			if status, got := post(t, login, form, chunked); status != 200 || got != "user=cid" {
				t.Errorf("in chunks: status %d, %q", status, got)
			}
			if status, _ := post(t, login, form, struct{ io.Reader }{strings.NewReader("user=cid")}); status != 429 {
				t.Errorf("in chunks, again: status %d", status)
			}
			// This body exceeds both the guard's limit for reading and the size that is kept in
			// memory.
			large := "user=dan&pad=" + strings.Repeat("x", 600_000)
			if status, got := post(t, login, form, strings.NewReader(large)); stream && status != 429 || !stream && (status != 200 || got != large) {
				t.Errorf("large: status %d, %d bytes", status, len(got))
			}
			var parts bytes.Buffer
			const boundary = "b"
			fmt.Fprintf(&parts, "--%s\r\nContent-Disposition: form-data; name=\"user\"\r\n\r\neve\r\n--%[1]s--\r\n", boundary)
			for _, want := range []int{200, 429} {
				if status, _ := post(t, login, "multipart/form-data; boundary="+boundary, bytes.NewReader(parts.Bytes())); status != want {
					t.Errorf("of several parts: status %d, want %d", status, want)
				}
			}
		})
	}
}

// The rest of a refused request's stream is not read as another request.
func TestRefusedStream(t *testing.T) {
	guard := middlewaretest.NewGuard(t, `{id: uploads, match: {route: "POST /login"}, limit: {rate: 1/1h, burst: 1}}`)
	const request = "GET /smuggled HTTP/1.1\r\nHost: suite\r\n\r\n"
	app := fiber.New(fiber.Config{StreamRequestBody: true, BodyLimit: 20 * len(request)}) // read ahead
	app.Use(hpfiber.Middleware(guard))
	smuggled := 0
	app.Get("/smuggled", func(fiber.Ctx) error { smuggled++; return nil })
	app.Post("/login", func(c fiber.Ctx) error {
		_, err := io.Copy(io.Discard, c.RequestCtx().RequestBodyStream())
		return err
	})
	base := serve(t, app)
	for _, size := range []int{1 << 11, 1 << 19} {
		body := strings.Repeat(request, size/len(request))
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		go func() { // the server may close the connection before it has all of it
			for range 2 {
				_, _ = fmt.Fprintf(conn, "POST /login HTTP/1.1\r\nHost: suite\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			}
		}()
		_, _ = io.Copy(io.Discard, conn)
		conn.Close()
	}
	if smuggled > 0 {
		t.Errorf("%d requests in bodies were served", smuggled)
	}
}

// A handler's error reaches the application's error handler, and a refusal does not.
func TestErrors(t *testing.T) {
	guard := middlewaretest.NewGuard(t, `{id: busy, match: {route: "GET /fails"}, limit: {concurrency: 1}}
		{id: twice, match: {route: "GET /fails"}, limit: {rate: 2/1h, burst: 2}}`)
	own := errors.New("the handler's own")
	var got []error
	app := fiber.New(fiber.Config{ErrorHandler: func(c fiber.Ctx, err error) error {
		got = append(got, err)
		return c.Status(http.StatusTeapot).SendString("by the error handler")
	}})
	app.Use(hpfiber.Middleware(guard))
	app.Get("/fails", func(fiber.Ctx) error { return own })
	for _, want := range []int{http.StatusTeapot, http.StatusTeapot, http.StatusTooManyRequests} {
		if status := send(t, app, "GET", "/fails"); status != want {
			t.Errorf("status %d, want %d", status, want)
		}
	}
	if len(got) != 2 || !errors.Is(got[0], own) {
		t.Errorf("errors %v", got)
	}
}

type userKey struct{}

// Parameters of the context are in c.Context or in Locals, and the handler's context is the
// application's own.
func TestContext(t *testing.T) {
	guard := middlewaretest.NewGuard(t, `{id: users, match: {route: "GET /search"}, by: ["ctx:user"], limit: {rate: 1/1h, burst: 1}}`,
		middleware.WithParam("user", func(ctx context.Context) string {
			user, _ := ctx.Value(userKey{}).(string)
			return user
		}))
	for name, put := range map[string]func(fiber.Ctx, string){
		"context": func(c fiber.Ctx, user string) { c.SetContext(context.WithValue(c.Context(), userKey{}, user)) },
		"locals":  func(c fiber.Ctx, user string) { c.Locals(userKey{}, user) },
	} {
		app := fiber.New()
		app.Use(func(c fiber.Ctx) error {
			put(c, name+strings.Clone(c.Query("user")))
			before := c.Context()
			err := c.Next()
			if c.Context() != before {
				t.Error("another context after the guard")
			}
			return err
		}, hpfiber.Middleware(guard))
		app.Get("/search", func(fiber.Ctx) error { return nil })
		for _, c := range []struct {
			user string
			want int
		}{{"ann", 200}, {"ann", 429}, {"bob", 200}} {
			if status := send(t, app, "GET", "/search?user="+c.user); status != c.want {
				t.Errorf("%s, %s: status %d, want %d", name, c.user, status, c.want)
			}
		}
	}
}

// A stream that fasthttp writes after the handler has returned holds its permit until it ends,
// whether or not its length is known. It keeps its headers.
func TestStream(t *testing.T) {
	const size = 100_000
	for name, write := range map[string]func(fiber.Ctx, io.Reader) error{
		"writer": func(c fiber.Ctx, r io.Reader) error {
			return c.SendStreamWriter(func(w *bufio.Writer) { _, _ = io.Copy(w, r) })
		},
		"reader":  func(c fiber.Ctx, r io.Reader) error { return c.SendStream(r) },
		"of size": func(c fiber.Ctx, r io.Reader) error { return c.SendStream(r, size) },
		"limited": func(c fiber.Ctx, r io.Reader) error { return c.SendStream(io.LimitReader(r, size)) },
	} {
		t.Run(name, func(t *testing.T) {
			guard := middlewaretest.NewGuard(t, `{id: busy, match: {route: "GET /stream"}, limit: {concurrency: 1}}
				{id: bytes, match: {route: "GET /stream"}, count: bytes, limit: {rate: 1/1h, burst: 150000}}`)
			app := fiber.New()
			app.Use(hpfiber.Middleware(guard))
			rest := make(chan io.Reader, 3)
			app.Get("/stream", func(c fiber.Ctx) error {
				c.Set("X-Own", "kept")
				c.Status(http.StatusAccepted)
				return write(c, <-rest)
			})
			target := serve(t, app) + "/stream"
			in, out := io.Pipe()
			rest <- in
			get := func() *http.Response {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				return res
			}
			go func() { _, _ = out.Write(make([]byte, 60_000)) }()
			first := get()
			defer first.Body.Close()
			second := get()
			second.Body.Close()
			if first.StatusCode != http.StatusAccepted || first.Header.Get("X-Own") != "kept" || second.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("status %d, %v; beside it %d", first.StatusCode, first.Header, second.StatusCode)
			}
			go func() { _, _ = out.Write(make([]byte, size-60_000)); out.Close() }()
			if n, err := io.Copy(io.Discard, first.Body); n != size || err != nil {
				t.Errorf("%d bytes, %v", n, err)
			}
			// The first request leaves 50,000 bytes, so one more passes, and then none.
			var statuses []int
			for end := time.Now().Add(5 * time.Second); len(statuses) < 2 && time.Now().Before(end); {
				select {
				case rest <- strings.NewReader(strings.Repeat("x", size)):
				default:
				}
				res := get()
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if res.StatusCode != http.StatusServiceUnavailable {
					statuses = append(statuses, res.StatusCode)
				}
			}
			if fmt.Sprint(statuses) != "[202 429]" {
				t.Errorf("after it: statuses %v", statuses)
			}
		})
	}
}

// hiddenConns is a listener whose connections do not show their descriptors.
type hiddenConns struct{ net.Listener }

func (l hiddenConns) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return struct{ net.Conn }{conn}, nil
}

// A connection that closes before a handler can hijack it returns its permit, at the latest when
// the garbage collector runs.
func TestLostConnection(t *testing.T) {
	for name, c := range map[string]struct {
		wrap func(net.Listener) net.Listener
		wait func()
	}{
		"seen":   {func(l net.Listener) net.Listener { return l }, func() {}},
		"hidden": {func(l net.Listener) net.Listener { return hiddenConns{l} }, runtime.GC},
	} {
		t.Run(name, func(t *testing.T) {
			defer debug.SetGCPercent(debug.SetGCPercent(-1))
			guard := middlewaretest.NewGuard(t, `{id: busy, match: {route: "GET /socket"}, limit: {concurrency: 1}}`)
			app := fiber.New()
			app.Use(hpfiber.Middleware(guard))
			app.Get("/socket", func(c fiber.Ctx) error {
				c.RequestCtx().Hijack(func(net.Conn) {})
				return c.SendStatus(http.StatusSwitchingProtocols)
			})
			target := serveOn(t, app, c.wrap) + "/socket"
			get := func() int {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				req.Close = true // fasthttp does not call the function then
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				return res.StatusCode
			}
			if status := get(); status != http.StatusSwitchingProtocols {
				t.Fatalf("status %d", status)
			}
			for end := time.Now().Add(10 * time.Second); get() != http.StatusSwitchingProtocols; time.Sleep(5 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("the permit is lost")
				}
				c.wait()
			}
		})
	}
}
