package hpconnect_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	hpconnect "github.com/hotparam/hotparam/adapters/connect"
	"github.com/hotparam/hotparam/middleware/middlewaretest"
)

// getFixture is a server whose GET calls are guarded as requests of HTTP and the others as calls, as in
// README.md.
type getFixture struct {
	*fixture
	calls   atomic.Int64
	message atomic.Value // the message of the last GET, as in the query
}

func startGet(t *testing.T, opts ...connect.HandlerOption) *getFixture {
	t.Helper()
	f := &getFixture{fixture: &fixture{t: t, guard: middlewaretest.NewGuard(t, `{id: gets, match: {route: "GET /shop.Search/Find"}, by: [message], hot: 1000000/s, limit: {rate: 100/1h}, on_hot: {cache: 1m, vary: ["header:accept-language"]}}`)}}
	find := func(ctx context.Context, req *text) (*text, error) {
		info, _ := connect.CallInfoForHandlerContext(ctx)
		h := info.RequestHeader()
		said := fmt.Sprintf("%s for %q in %q, call %d", req.GetValue(), h.Get("X-User"), h.Get("Accept-Language"), f.calls.Add(1))
		info.ResponseHeader().Set("X-Found", "1")
		info.ResponseTrailer().Set("X-Took", "1")
		switch req.GetValue() {
		case "none":
			return nil, connect.NewError(connect.CodeNotFound, errors.New(said))
		case "down":
			return nil, connect.NewError(connect.CodeUnavailable, errors.New(said))
		}
		return wrapperspb.String(said + strings.Repeat(".", 500)), nil
	}
	opts = append(opts, connect.WithIdempotency(connect.IdempotencyNoSideEffects))
	get := f.guard.Handler(connect.NewUnaryHandlerSimple(unary, find, opts...))
	mux := http.NewServeMux()
	mux.Handle("/shop.Search/", connect.NewUnaryHandlerSimple(unary, find, append(opts, connect.WithInterceptors(hpconnect.NewInterceptor(f.guard)))...))
	mux.HandleFunc("GET /shop.Search/", func(w http.ResponseWriter, r *http.Request) {
		f.message.Store(r.URL.Query().Get("message"))
		get.ServeHTTP(w, r)
	})
	f.http, f.url = serveHTTP2(t, mux)
	return f
}

// call makes a call, and returns the message or the error, and Cache-Status.
func (f *getFixture) call(opts []connect.ClientOption, value string, header ...string) (answer, status string) {
	f.t.Helper()
	f.opts = opts
	res, err := f.find(value, header...)
	if err != nil {
		var e *connect.Error
		if !errors.As(err, &e) {
			f.t.Fatal(err)
		}
		return e.Code().String() + ": " + e.Message(), e.Meta().Get("Cache-Status")
	}
	if res.Header().Get("X-Found") != "1" || res.Trailer().Get("X-Took") != "1" {
		f.t.Errorf("metadata %v, %v", res.Header(), res.Trailer())
	}
	return strings.TrimRight(res.Msg.GetValue(), "."), res.Header().Get("Cache-Status")
}

// heat makes the key of the message hot.
func (f *getFixture) heat(opts []connect.ClientOption, value string) {
	f.t.Helper()
	if _, status := f.call(opts, value); status != "" {
		f.t.Fatalf("%q is hot already: %s", value, status)
	}
	middlewaretest.Heat(f.t, f.guard, "gets GET /shop.Search/?message="+url.QueryEscape(f.message.Load().(string)))
	f.calls.Store(0)
}

// Calls of a hot key that are sent as GET share an answer, which nothing of one user has shaped.
func TestGetIsShared(t *testing.T) {
	for name, opts := range map[string][]connect.ClientOption{
		"gzip accepted": nil,
		"plain":         {connect.WithAcceptCompression("gzip", nil, nil)},
		"gzip sent":     {connect.WithSendGzip()},
		"JSON":          {connect.WithProtoJSON()},
	} {
		t.Run(name, func(t *testing.T) {
			const value = "phone"
			for _, required := range [][]connect.HandlerOption{nil, {connect.WithRequireConnectProtocolHeader()}} {
				f := startGet(t, required...)
				opts := append(opts, connect.WithHTTPGet(), connect.WithIdempotency(connect.IdempotencyNoSideEffects))
				f.heat(opts, value)
				for i, user := range []string{"ann", "ben", "eve"} {
					answer, status := f.call(opts, value, "X-User", user)
					if want := value + ` for "" in "", call 1`; answer != want || (i > 0) != (status == "hotparam; hit") {
						t.Errorf("%s gets %q, %s; want %q", user, answer, status, want)
					}
				}
				if answer, _ := f.call(opts, value, "Accept-Language", "de"); answer != value+` for "" in "de", call 2` {
					t.Errorf("another language: %q", answer)
				}
				if answer, status := f.call(opts, value, "X-User", "ann", "Authorization", "Bearer ann"); answer != value+` for "ann" in "", call 3` || !strings.Contains(status, "detail=authorization") {
					t.Errorf("with credentials: %q, %s", answer, status)
				}
			}
		})
	}
}

// Errors are not shared, and neither are calls that are not sent as GET.
func TestGetIsNotShared(t *testing.T) {
	f := startGet(t)
	get := []connect.ClientOption{connect.WithHTTPGet(), connect.WithIdempotency(connect.IdempotencyNoSideEffects)}
	for value, want := range map[string]string{"none": "not_found", "down": "unavailable"} {
		f.heat(get, value)
		for _, user := range []string{"ann", "ben"} {
			if answer, status := f.call(get, value, "X-User", user); !strings.HasPrefix(answer, fmt.Sprintf("%s: %s for %q in \"\"", want, value, user)) || !strings.Contains(status, "detail=") {
				t.Errorf("%s gets %q, %s", user, answer, status)
			}
		}
	}
	f.heat(get, "phone")
	for name, opts := range protocols {
		f.calls.Store(0)
		if answer, status := f.call(opts, "phone", "X-User", "ann"); answer != `phone for "ann" in "", call 1` || status != "" {
			t.Errorf("%s: %q, %s", name, answer, status)
		}
	}
}
