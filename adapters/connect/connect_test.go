package hpconnect_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	hpconnect "github.com/hotparam/hotparam/adapters/connect"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/middleware/middlewaretest"
	"github.com/hotparam/hotparam/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	text = wrapperspb.StringValue
	file = descriptorpb.FileDescriptorProto // has a message within, and repeated fields
)

const (
	unary   = "/shop.Search/Find"
	nested  = "/shop.Search/Nested"
	output  = "/shop.Search/Output"
	input   = "/shop.Search/Input"
	duplex  = "/shop.Search/Duplex"
	longest = 20 * time.Second
)

// protocols are the protocols that a connect server speaks, each with the client's options for it.
var protocols = map[string][]connect.ClientOption{
	"Connect":  nil,
	"JSON":     {connect.WithProtoJSON()},
	"gRPC":     {connect.WithGRPC()},
	"gRPC-Web": {connect.WithGRPCWeb()},
}

// fixture is a guarded server and its clients.
type fixture struct {
	t     *testing.T
	guard *middleware.Guard
	http  *http.Client
	url   string
	opts  []connect.ClientOption
}

type setup struct {
	rules   string
	find    func(context.Context, *text) (*text, error)
	guard   []middleware.Option
	options []hpconnect.Option
	before  []connect.Interceptor // interceptors in front of the guard
	client  []connect.ClientOption
}

func start(t *testing.T, s setup) *fixture {
	t.Helper()
	f := &fixture{t: t, guard: middlewaretest.NewGuard(t, s.rules, s.guard...), opts: s.client}
	guarded := connect.WithInterceptors(append(s.before, hpconnect.NewInterceptor(f.guard, s.options...))...)
	mux := http.NewServeMux()
	if s.find == nil {
		s.find = func(_ context.Context, req *text) (*text, error) {
			return wrapperspb.String("found " + req.GetValue()), nil
		}
	}
	mux.Handle(unary, connect.NewUnaryHandlerSimple(unary, s.find, guarded, connect.WithIdempotency(connect.IdempotencyNoSideEffects)))
	mux.Handle(nested, connect.NewUnaryHandlerSimple(nested, func(context.Context, *file) (*text, error) { return new(text), nil }, guarded))
	mux.Handle(output, connect.NewServerStreamHandlerSimple(output, func(ctx context.Context, req *text, stream *connect.ServerStream[text]) error {
		for _, word := range strings.Fields(req.GetValue()) {
			middleware.AddCost(ctx, 1)
			if err := stream.Send(wrapperspb.String(word)); err != nil {
				return err
			}
		}
		return nil
	}, guarded))
	mux.Handle(input, connect.NewClientStreamHandlerSimple(input, func(ctx context.Context, stream *connect.ClientStream[text]) (*text, error) {
		all := ""
		for stream.Receive() {
			middleware.AddCost(ctx, 1)
			all += stream.Msg().GetValue()
		}
		return wrapperspb.String(all), stream.Err()
	}, guarded))
	mux.Handle(duplex, connect.NewBidiStreamHandler(duplex, func(_ context.Context, stream *connect.BidiStream[text, text]) error {
		for {
			req, err := stream.Receive()
			if err != nil {
				return nil //nolint:nilerr // whatever it is
			}
			if err := stream.Send(req); err != nil {
				return err
			}
		}
	}, guarded))
	f.http, f.url = serveHTTP2(t, mux)
	return f
}

// serveHTTP2 starts a server without TLS, and returns a client of it and its URL.
func serveHTTP2(t *testing.T, h http.Handler) (*http.Client, string) {
	server := httptest.NewUnstartedServer(h)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	transport := &http.Transport{Protocols: server.Config.Protocols}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}, server.URL
}

func client[Req, Res any](f *fixture, method string) *connect.Client[Req, Res] {
	return connect.NewClient[Req, Res](f.http, f.url+method, f.opts...)
}

func (f *fixture) context() context.Context {
	ctx, cancel := context.WithTimeout(f.t.Context(), longest)
	f.t.Cleanup(cancel)
	return ctx
}

// find makes a unary call with this text, and these headers in pairs.
func (f *fixture) find(value string, header ...string) (*connect.Response[text], error) {
	req := connect.NewRequest(wrapperspb.String(value))
	for i := 0; i < len(header); i += 2 {
		req.Header().Add(header[i], header[i+1])
	}
	return client[text, text](f, unary).CallUnary(f.context(), req)
}

// want makes unary calls and compares their codes. Code 0 means success.
func (f *fixture) want(value string, want ...connect.Code) {
	f.t.Helper()
	for i, code := range want {
		_, err := f.find(value)
		wantCode(f.t, "call "+strconv.Itoa(i)+" of "+value, err, code)
	}
}

func wantCode(t *testing.T, what string, err error, want connect.Code) {
	t.Helper()
	if err == nil && want == 0 {
		return
	}
	if err == nil || want == 0 || connect.CodeOf(err) != want {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func (f *fixture) await(what string, condition func() bool) {
	f.t.Helper()
	for end := time.Now().Add(longest); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("%s: not in time", what)
		}
	}
}

const (
	byText    = `{id: texts, match: {route: shop.Search/Find}, by: ["rpc:value"], limit: {rate: 1/1h, burst: 1}}`
	exhausted = connect.CodeResourceExhausted
)

func TestRefused(t *testing.T) {
	for name, opts := range protocols {
		t.Run(name, func(t *testing.T) {
			f := start(t, setup{rules: byText, guard: []middleware.Option{middleware.WithHeaders()}, client: opts})
			res, err := f.find("phone")
			if err != nil {
				t.Fatal(err)
			}
			if got := res.Header().Values("RateLimit"); len(got) != 1 || !strings.HasPrefix(got[0], `"texts";r=0`) || res.Msg.GetValue() != "found phone" {
				t.Errorf("RateLimit %q, %v", got, res.Msg)
			}
			_, err = f.find("phone")
			wantCode(t, "again", err, exhausted)
			var e *connect.Error
			if !errors.As(err, &e) {
				t.Fatal(err)
			}
			if got := e.Meta().Values("RateLimit"); len(got) != 1 {
				t.Errorf("RateLimit of the error: %q", got)
			}
			wait := time.Duration(0)
			var kinds []string
			for _, detail := range e.Details() {
				value, err := detail.Value()
				if err != nil {
					t.Fatal(err)
				}
				switch d := value.(type) {
				case *errdetails.RetryInfo:
					wait = d.GetRetryDelay().AsDuration()
				case *errdetails.QuotaFailure:
					if v := d.GetViolations(); len(v) != 1 || v[0].GetQuotaId() != "texts" || v[0].GetSubject() != "rule:texts" {
						t.Errorf("%v", d)
					}
				case *errdetails.ErrorInfo:
					if d.GetReason() != "LIMITED" || d.GetMetadata()["rule"] != "texts" {
						t.Errorf("%v", d)
					}
				}
				kinds = append(kinds, detail.Type())
				if strings.Contains(value.(interface{ String() string }).String(), "phone") {
					t.Errorf("a value is in %v", value)
				}
			}
			if len(kinds) != 3 || wait < 59*time.Minute {
				t.Errorf("details %q, wait %v", kinds, wait)
			}
			seconds, err := strconv.Atoi(strings.Join(e.Meta().Values("Retry-After"), ","))
			if err != nil || seconds < int(wait.Seconds()) || seconds > int(wait.Seconds())+1 {
				t.Errorf("Retry-After %q, want %v", e.Meta().Values("Retry-After"), wait)
			}
			f.want("boat", 0)
		})
	}
}

func TestCodes(t *testing.T) {
	f := start(t, setup{rules: `{id: texts, match: {route: shop.Search/Find}, by: ["rpc:value"], limit: {rate: 1/1h, burst: 9}, block: {"rpc:value": bad}}`})
	f.want("bad", connect.CodePermissionDenied)
	f.want("good", 0, 0)
	f = start(t, setup{rules: byText, guard: []middleware.Option{middleware.WithShadow()}})
	f.want("phone", 0, 0, 0)
	if n := f.guard.Stats().Shadowed; n != 2 {
		t.Errorf("%d calls would have been refused, want 2", n)
	}
}

// For each source of a parameter there are three calls: one that passes, one that is refused, and
// one with another value.
func TestSources(t *testing.T) {
	type tenant struct{}
	before := connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			return next(context.WithValue(ctx, tenant{}, req.Header().Get("X-Tenant")), req)
		}
	})
	ofTenant := middleware.WithParam("tenant", func(ctx context.Context) string {
		name, _ := ctx.Value(tenant{}).(string)
		return name
	})
	for by, headers := range map[string][2][]string{
		"header:x-plan": {{"X-Plan", "free"}, {"X-Plan", "gold"}},
		"header:x-tag":  {{"X-Tag", "a", "X-Tag", "b"}, {"X-Tag", "c"}},
		"cookie:cart":   {{"Cookie", "a=1; cart=7"}, {"Cookie", "cart=8"}},
		"ctx:tenant":    {{"X-Tenant", "shop"}, {"X-Tenant", "bank"}},
		"addr:ip":       {nil, nil},
	} {
		t.Run(by, func(t *testing.T) {
			f := start(t, setup{
				rules:  `{id: r, match: {route: shop.Search/Find}, by: ["` + by + `"], limit: {rate: 1/1h, burst: 1}}`,
				before: []connect.Interceptor{before}, guard: []middleware.Option{ofTenant},
			})
			_, err := f.find("", headers[0]...)
			wantCode(t, "the first", err, 0)
			_, err = f.find("", headers[0]...)
			wantCode(t, "the second", err, exhausted)
			if headers[1] != nil {
				_, err = f.find("", headers[1]...)
				wantCode(t, "another", err, 0)
			}
		})
	}
	for by, messages := range map[string][2]*file{
		"rpc:options.go_package": {{Options: &descriptorpb.FileOptions{GoPackage: proto.String("a")}}, {Options: &descriptorpb.FileOptions{GoPackage: proto.String("b")}}},
		"rpc:dependency":         {{Dependency: []string{"a", "b"}}, {Dependency: []string{"c"}}},
	} {
		t.Run(by, func(t *testing.T) {
			f := start(t, setup{rules: `{id: r, match: {route: shop.Search/Nested}, by: ["` + by + `"], limit: {rate: 1/1h, burst: 1}}`})
			for i, want := range []connect.Code{0, exhausted} {
				_, err := client[file, text](f, nested).CallUnary(f.context(), connect.NewRequest(messages[0]))
				wantCode(t, strconv.Itoa(i), err, want)
			}
			_, err := client[file, text](f, nested).CallUnary(f.context(), connect.NewRequest(messages[1]))
			wantCode(t, "another", err, 0)
		})
	}
}

// Options receive the call as an HTTP request, for calls by GET too.
func TestRequest(t *testing.T) {
	var got *http.Request
	f := start(t, setup{rules: byText, client: []connect.ClientOption{connect.WithHTTPGet(), connect.WithIdempotency(connect.IdempotencyNoSideEffects)},
		guard: []middleware.Option{middleware.WithSkip(func(r *http.Request) bool {
			got = r
			return true
		})}})
	if _, err := f.find("phone", "X-Plan", "free", "X-Plan", "gold"); err != nil {
		t.Fatal(err)
	}
	if got.Method != http.MethodGet || got.URL.Path != unary || !strings.HasPrefix(got.Host, "127.0.0.1:") || !strings.HasPrefix(got.RemoteAddr, "127.0.0.1:") {
		t.Errorf("%s %s of %q from %q", got.Method, got.URL, got.Host, got.RemoteAddr)
	}
	if len(got.Header.Values("X-Plan")) != 2 || got.URL.Query().Get("encoding") != "proto" {
		t.Errorf("%v %v", got.Header, got.URL)
	}
}

func TestWaited(t *testing.T) {
	f := start(t, setup{rules: `{id: texts, match: {route: shop.Search/Find}, by: ["rpc:value"], limit: {rate: 1/1s, burst: 1, wait: 5s}}`})
	begin := time.Now()
	f.want("phone", 0, 0)
	if took := time.Since(begin); took < 900*time.Millisecond || f.guard.Stats().Waited != 1 {
		t.Errorf("two calls at 1/s took %v", took)
	}
	ctx, cancel := context.WithCancel(f.context())
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err := client[text, text](f, unary).CallUnary(ctx, connect.NewRequest(wrapperspb.String("phone")))
	wantCode(t, "cancelled", err, connect.CodeCanceled)
	f.await("the end of the wait", func() bool { return f.guard.Stats().Gone == 1 })
}

func TestServed(t *testing.T) {
	yaml := ""
	for id, method := range map[string]string{"u": unary, "o": output, "i": input} {
		yaml += `{id: ` + id + `, match: {route: ` + method[1:] + `}, limit: {rate: 1/1h, burst: 1, on_limit: serve, serve: {status: 404, body: none}}}` + "\n"
	}
	f := start(t, setup{rules: yaml})
	f.want("phone", 0)
	_, err := f.find("phone")
	var e *connect.Error
	if !errors.As(err, &e) || e.Code() != connect.CodeNotFound || e.Message() != "none" {
		t.Errorf("%v", err)
	}
	for name, opts := range protocols {
		t.Run(name, func(t *testing.T) {
			f := start(t, setup{rules: yaml, client: opts, guard: []middleware.Option{middleware.WithHeaders()}, options: []hpconnect.Option{
				hpconnect.WithServed(func(_ context.Context, method string, request any, d rules.Decision) (connect.AnyResponse, error) {
					if (request != nil) != (method == unary) {
						t.Errorf("%s: request %v", method, request)
					}
					return connect.NewResponse(wrapperspb.String("served " + d.Rule)), nil
				}),
			}})
			for i, want := range []string{"found phone", "served u"} {
				res, err := f.find("phone")
				if err != nil || res.Msg.GetValue() != want || len(res.Header().Values("RateLimit")) != 1 {
					t.Errorf("%d: %v %v, want %s", i, res, err, want)
				}
			}
			for i, want := range []string{"a b", "served o"} {
				if got, err := f.output("a b"); err != nil || got != want {
					t.Errorf("%d: %q %v, want %s", i, got, err, want)
				}
			}
			stream, err := client[text, text](f, output).CallServerStream(f.context(), connect.NewRequest(new(text)))
			if err != nil {
				t.Fatal(err)
			}
			if !stream.Receive() || len(stream.ResponseHeader().Values("RateLimit")) != 1 {
				t.Errorf("headers %v, %v", stream.ResponseHeader(), stream.Err())
			}
			_ = stream.Close()
			for i, want := range []string{"ab", "served i"} {
				if got, err := f.input("a", "b"); err != nil || got != want {
					t.Errorf("%d: %q %v, want %s", i, got, err, want)
				}
			}
		})
	}
}

// output makes a call of a server stream and returns its messages.
func (f *fixture) output(value string) (string, error) {
	stream, err := client[text, text](f, output).CallServerStream(f.context(), connect.NewRequest(wrapperspb.String(value)))
	if err != nil {
		return "", err
	}
	defer stream.Close()
	var got []string
	for stream.Receive() {
		got = append(got, stream.Msg().GetValue())
	}
	return strings.Join(got, " "), stream.Err()
}

// input makes a call of a client stream with these messages.
func (f *fixture) input(messages ...string) (string, error) {
	stream := client[text, text](f, input).CallClientStream(f.context())
	for _, m := range messages {
		if stream.Send(wrapperspb.String(m)) != nil {
			break // the error is that of CloseAndReceive
		}
	}
	res, err := stream.CloseAndReceive()
	if err != nil {
		return "", err
	}
	return res.Msg.GetValue(), nil
}

// A stream is decided on its first message. A client stream without messages is decided at its
// end.
func TestStreams(t *testing.T) {
	for name, opts := range protocols {
		t.Run(name, func(t *testing.T) {
			f := start(t, setup{client: opts, guard: []middleware.Option{middleware.WithHeaders()}, rules: `{id: r, match: {route: "*"}, by: ["rpc:value"], limit: {rate: 1/1h, burst: 1}}
				{id: all, match: {route: shop.Search/Input}, limit: {rate: 1/1h, burst: 2}}`})
			if got, err := f.output("a b"); err != nil || got != "a b" {
				t.Errorf("%q %v", got, err)
			}
			got, err := f.output("a b")
			wantCode(t, "the same message", err, exhausted)
			var e *connect.Error
			if got != "" || !errors.As(err, &e) || e.Meta().Get("Retry-After") == "" || len(e.Details()) != 3 {
				t.Errorf("%q, %v", got, e)
			}
			if got, err := f.input("a", "b"); err != nil || got != "ab" {
				t.Errorf("%q %v", got, err)
			}
			_, err = f.input("a", "c")
			wantCode(t, "the same first message", err, exhausted)
			_, err = f.input()
			wantCode(t, "no message", err, 0)
			_, err = f.input()
			wantCode(t, "no message, over the limit of all", err, exhausted)

			for i, want := range []connect.Code{0, exhausted} {
				stream := client[text, text](f, duplex).CallBidiStream(f.context())
				for range 2 {
					_ = stream.Send(wrapperspb.String("x")) // the error is that of Receive
				}
				_, err := stream.Receive()
				wantCode(t, "bidi "+strconv.Itoa(i), err, want)
				if err == nil && stream.ResponseHeader().Get("RateLimit") == "" {
					t.Errorf("headers %v", stream.ResponseHeader())
				}
				_ = stream.CloseRequest()
				_ = stream.CloseResponse()
			}
		})
	}
}

// A stream without any message is a request, too, if its handler sends no reply.
func TestEmptyStream(t *testing.T) {
	f := start(t, setup{rules: `{id: r, match: {route: "*"}, by: ["rpc:value"], limit: {rate: 1/1h, burst: 1}}
		{id: all, match: {route: shop.Search/Duplex}, limit: {rate: 1/1h, burst: 1}}`})
	for i, want := range []connect.Code{0, exhausted} {
		stream := client[text, text](f, duplex).CallBidiStream(f.context())
		_ = stream.Send(nil)
		_ = stream.CloseRequest()
		_, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			err = nil
		}
		wantCode(t, strconv.Itoa(i), err, want)
		_ = stream.CloseResponse()
	}
}

// A stream whose rules need no message is decided when it is opened, and holds its permit until
// its handler has returned.
func TestOpenedStream(t *testing.T) {
	f := start(t, setup{rules: `{id: r, match: {route: shop.Search/Duplex}, limit: {concurrency: 1}}`})
	first := client[text, text](f, duplex).CallBidiStream(f.context())
	if err := first.Send(wrapperspb.String("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Receive(); err != nil { // so it is there
		t.Fatal(err)
	}
	refused := func() bool {
		stream := client[text, text](f, duplex).CallBidiStream(f.context())
		_ = stream.Send(nil)
		_ = stream.CloseRequest()
		_, err := stream.Receive()
		_ = stream.CloseResponse()
		if !errors.Is(err, io.EOF) && connect.CodeOf(err) != connect.CodeUnavailable {
			t.Fatal(err)
		}
		return !errors.Is(err, io.EOF)
	}
	if !refused() {
		t.Error("beside the first")
	}
	_ = first.CloseRequest()
	if _, err := first.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("the first: %v", err)
	}
	_ = first.CloseResponse()
	f.await("the permit", func() bool { return !refused() })
}

// A permit is held until the handler has returned, even if it panics.
func TestConcurrency(t *testing.T) {
	entered, open := make(chan struct{}), make(chan struct{})
	f := start(t, setup{
		rules: `{id: one, match: {route: shop.Search/Find}, limit: {concurrency: 1}}`,
		before: []connect.Interceptor{connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
			return func(ctx context.Context, req connect.AnyRequest) (res connect.AnyResponse, err error) {
				defer func() {
					if v := recover(); v != nil {
						err = connect.NewError(connect.CodeInternal, errors.New(v.(string)))
					}
				}()
				return next(ctx, req)
			}
		})},
		find: func(_ context.Context, req *text) (*text, error) {
			switch req.GetValue() {
			case "slow":
				entered <- struct{}{}
				<-open
			case "panic":
				panic("the handler's own")
			}
			return new(text), nil
		},
	})
	f.want("panic", connect.CodeInternal)
	slow := make(chan error, 1)
	go func() {
		_, err := f.find("slow")
		slow <- err
	}()
	<-entered
	f.want("other", connect.CodeUnavailable)
	close(open)
	if err := <-slow; err != nil {
		t.Errorf("the first: %v", err)
	}
	f.await("the permit", func() bool {
		_, err := f.find("other")
		return err == nil
	})
}

// The time of a handler is charged while it runs.
func TestTime(t *testing.T) {
	open := make(chan struct{})
	f := start(t, setup{
		rules: `{id: r, match: {route: shop.Search/Find}, count: ms, limit: {rate: 1ms/1h, burst: 50ms}}`,
		find: func(_ context.Context, req *text) (*text, error) {
			if req.GetValue() == "slow" {
				<-open
			}
			return new(text), nil
		},
	})
	slow := make(chan error, 1)
	go func() {
		_, err := f.find("slow")
		slow <- err
	}()
	f.await("the charge", func() bool { return !f.guard.Check(middleware.Request{Pattern: "shop.Search/Find"}).Allowed })
	f.want("other", exhausted)
	close(open)
	if err := <-slow; err != nil {
		t.Errorf("the first: %v", err)
	}
}

// Costs of handlers are charged at their end: the size of messages, and units.
func TestCosts(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for rule, call := range map[string]func(*fixture) error{
		`{id: r, match: {route: shop.Search/Find}, count: bytes, limit: {rate: 1/1h, burst: 1500}}`: func(f *fixture) error {
			_, err := f.find(long)
			return err
		},
		`{id: r, match: {route: shop.Search/Find}, count: units, limit: {rate: 1/1h, burst: 7}}`: func(f *fixture) error {
			_, err := f.find("")
			return err
		},
		`{id: r, match: {route: shop.Search/Output}, count: bytes, limit: {rate: 1/1h, burst: 1500}}`: func(f *fixture) error {
			_, err := f.output(long[:500] + " " + long[:500])
			return err
		},
		`{id: r, match: {route: shop.Search/Input}, by: ["rpc:value"], count: units, limit: {rate: 1/1h, burst: 3}}`: func(f *fixture) error {
			_, err := f.input("a", "b")
			return err
		},
	} {
		f := start(t, setup{rules: rule, find: func(ctx context.Context, req *text) (*text, error) {
			middleware.AddCost(ctx, 5)
			return req, nil
		}})
		for i, want := range []connect.Code{0, 0, exhausted} {
			wantCode(t, rule+": call "+strconv.Itoa(i), call(f), want)
		}
	}
}

// Clients with the interceptor are not limited.
func TestClients(t *testing.T) {
	f := start(t, setup{rules: `{id: r, match: {route: other}, limit: 1/s}`})
	strict := middlewaretest.NewGuard(t, `{id: r, match: {route: "*"}, limit: {rate: 1/1h, burst: 1}}`)
	f.opts = []connect.ClientOption{connect.WithInterceptors(hpconnect.NewInterceptor(strict))}
	f.want("phone", 0, 0, 0)
	for range 3 {
		if _, err := f.output("a"); err != nil {
			t.Error(err)
		}
	}
}
