package hpgrpc_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	hpgrpc "github.com/hotparam/hotparam/adapters/grpc"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

const byUser = `{id: users, match: {route: ` + unaryRoute + `}, by: ["rpc:response_status.message"], limit: {rate: 1/1h, burst: 1}}`

func TestRefused(t *testing.T) {
	f := start(t, setup{rules: byUser, guard: []middleware.Option{middleware.WithHeaders()}})
	ctx := f.context()
	var header, trailer metadata.MD
	if code := f.call(ctx, "ann", grpc.Header(&header), grpc.Trailer(&trailer)); code != codes.OK {
		t.Fatal(code)
	}
	if got := header.Get("ratelimit"); len(got) != 1 || !strings.HasPrefix(got[0], `"users";r=0`) {
		t.Errorf("RateLimit of a call that passes: %q", got)
	}
	if len(trailer) > 0 {
		t.Errorf("trailers %v", trailer)
	}
	_, err := f.UnaryCall(ctx, &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Message: "ann"}}, grpc.Header(&header), grpc.Trailer(&trailer))
	s := status.Convert(err)
	if s.Code() != codes.ResourceExhausted || !strings.Contains(s.Message(), "retry in 3") {
		t.Errorf("%v", err)
	}
	var retry *errdetails.RetryInfo
	var quota *errdetails.QuotaFailure
	var info *errdetails.ErrorInfo
	for _, detail := range s.Details() {
		switch d := detail.(type) {
		case *errdetails.RetryInfo:
			retry = d
		case *errdetails.QuotaFailure:
			quota = d
		case *errdetails.ErrorInfo:
			info = d
		default:
			t.Errorf("unexpected %v", d)
		}
	}
	if d := retry.GetRetryDelay().AsDuration(); d < 59*time.Minute || d > 3*time.Hour {
		t.Errorf("RetryInfo: %v", d)
	}
	if v := quota.GetViolations(); len(v) != 1 || v[0].GetSubject() != "rule:users" || v[0].GetQuotaId() != "users" {
		t.Errorf("QuotaFailure: %v", quota)
	}
	if info.GetReason() != "LIMITED" || info.GetMetadata()["rule"] != "users" || info.GetDomain() == "" {
		t.Errorf("ErrorInfo: %v", info)
	}
	if strings.Contains(s.Proto().String(), "ann") {
		t.Errorf("the status has a value: %v", s.Proto())
	}
	if len(header.Get("ratelimit")) > 0 {
		t.Errorf("a refused call has headers, so that no client would retry it: %v", header)
	}
	seconds, err := strconv.Atoi(strings.Join(trailer.Get("retry-after"), ","))
	if want := int(retry.GetRetryDelay().AsDuration().Seconds()); err != nil || seconds < want || seconds > want+1 {
		t.Errorf("Retry-After %q, want %d", trailer.Get("retry-after"), want)
	}
	if got := trailer.Get("grpc-retry-pushback-ms"); !slices.Equal(got, []string{"-1"}) {
		t.Errorf("a client would wait an hour: %q", got)
	}
	f.want(ctx, "bob", codes.OK)
}

func TestCodes(t *testing.T) {
	ctx := t.Context()
	f := start(t, setup{rules: `{id: users, match: {route: ` + unaryRoute + `}, by: ["rpc:response_status.message"], limit: {rate: 1/1h, burst: 9}, block: {"rpc:response_status.message": bad}}`})
	var trailer metadata.MD
	if code := f.call(ctx, "bad", grpc.Trailer(&trailer)); code != codes.PermissionDenied {
		t.Errorf("blocked: %v", code)
	}
	if got := trailer.Get("grpc-retry-pushback-ms"); !slices.Equal(got, []string{"-1"}) || len(trailer.Get("retry-after")) > 0 {
		t.Errorf("a blocked call's trailers: %v", trailer)
	}
	f.want(ctx, "good", codes.OK, codes.OK)

	f = start(t, setup{rules: byUser, guard: []middleware.Option{middleware.WithShadow()}})
	f.want(ctx, "ann", codes.OK, codes.OK, codes.OK)
	if n := f.guard.Stats().Shadowed; n != 2 {
		t.Errorf("%d calls would have been refused, want 2", n)
	}

	f = start(t, setup{rules: byUser, guard: []middleware.Option{middleware.WithSkip(func(r *http.Request) bool {
		return r.Header.Get("X-Probe") != "" && r.URL.Path == "/"+unaryRoute
	})}})
	f.want(ctx, "ann", codes.OK, codes.ResourceExhausted)
	f.want(metadata.AppendToOutgoingContext(ctx, "x-probe", "1"), "ann", codes.OK)
}

// For each source of a parameter, one call has a key that has used up its limit, and one has
// another value.
func TestSources(t *testing.T) {
	type tenant struct{}
	before := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		return handler(context.WithValue(ctx, tenant{}, strings.Join(md.Get("x-tenant"), ",")), req)
	}
	ofTenant := middleware.WithParam("tenant", func(ctx context.Context) string {
		name, _ := ctx.Value(tenant{}).(string)
		return name
	})
	message := func(m *pb.SimpleRequest) (context.Context, *pb.SimpleRequest) { return t.Context(), m }
	meta := func(pairs ...string) (context.Context, *pb.SimpleRequest) {
		return metadata.AppendToOutgoingContext(t.Context(), pairs...), new(pb.SimpleRequest)
	}
	for by, calls := range map[string][2]func() (context.Context, *pb.SimpleRequest){
		"header:x-plan": {
			func() (context.Context, *pb.SimpleRequest) { return meta("x-plan", "free") },
			func() (context.Context, *pb.SimpleRequest) { return meta("x-plan", "gold") },
		},
		"header:x-trace-bin": {
			func() (context.Context, *pb.SimpleRequest) { return meta("x-trace-bin", "\x00\xff") },
			func() (context.Context, *pb.SimpleRequest) { return meta("x-trace-bin", "\x00\xfe") },
		},
		"header:x-tag": { // repeated
			func() (context.Context, *pb.SimpleRequest) { return meta("x-tag", "a", "x-tag", "b") },
			func() (context.Context, *pb.SimpleRequest) { return meta("x-tag", "c") },
		},
		"cookie:cart": {
			func() (context.Context, *pb.SimpleRequest) { return meta("cookie", "a=1; cart=7") },
			func() (context.Context, *pb.SimpleRequest) { return meta("cookie", "cart=8; a=1") },
		},
		"addr:ip": {
			func() (context.Context, *pb.SimpleRequest) { return meta() },
			nil,
		},
		"ctx:tenant": {
			func() (context.Context, *pb.SimpleRequest) { return meta("x-tenant", "shop") },
			func() (context.Context, *pb.SimpleRequest) { return meta("x-tenant", "bank") },
		},
		"rpc:response_size": {
			func() (context.Context, *pb.SimpleRequest) { return message(&pb.SimpleRequest{ResponseSize: 7}) },
			func() (context.Context, *pb.SimpleRequest) { return message(&pb.SimpleRequest{ResponseSize: 8}) },
		},
		"rpc:payload.body": {
			func() (context.Context, *pb.SimpleRequest) {
				return message(&pb.SimpleRequest{Payload: &pb.Payload{Body: []byte("a")}})
			},
			func() (context.Context, *pb.SimpleRequest) {
				return message(&pb.SimpleRequest{Payload: &pb.Payload{Body: []byte("b")}})
			},
		},
	} {
		t.Run(by, func(t *testing.T) {
			f := start(t, setup{
				rules:  `{id: r, match: {route: ` + unaryRoute + `}, by: ["` + by + `"], limit: {rate: 1/1h, burst: 1}}`,
				before: []grpc.UnaryServerInterceptor{before},
				guard:  []middleware.Option{ofTenant},
			})
			for i, want := range []codes.Code{codes.OK, codes.ResourceExhausted} {
				ctx, m := calls[0]()
				if _, err := f.UnaryCall(ctx, m); status.Code(err) != want {
					t.Errorf("call %d: %v, want %v", i, err, want)
				}
			}
			if calls[1] == nil {
				return
			}
			ctx, m := calls[1]()
			if _, err := f.UnaryCall(ctx, m); err != nil {
				t.Errorf("another value: %v", err)
			}
		})
	}
}

// Options receive the call as an HTTP request.
func TestRequest(t *testing.T) {
	var got *http.Request
	f := start(t, setup{rules: byUser, guard: []middleware.Option{middleware.WithSkip(func(r *http.Request) bool {
		got = r
		return true
	})}})
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-plan", "free", "x-plan", "gold", "x-trace-bin", "\x00\xff")
	f.want(ctx, "ann", codes.OK)
	if got.Method != http.MethodPost || got.URL.Path != "/"+unaryRoute || got.RequestURI != "/"+unaryRoute || !strings.HasPrefix(got.Host, "127.0.0.1:") {
		t.Errorf("%s %s of %q", got.Method, got.URL, got.Host)
	}
	if !strings.HasPrefix(got.RemoteAddr, "127.0.0.1:") || got.Header.Get("Content-Type") != "application/grpc" {
		t.Errorf("from %q, %v", got.RemoteAddr, got.Header)
	}
	if v := got.Header.Values("X-Plan"); !slices.Equal(v, []string{"free", "gold"}) {
		t.Errorf("repeated metadata: %q", v)
	}
	if v := got.Header.Get("X-Trace-Bin"); v != base64.RawStdEncoding.EncodeToString([]byte("\x00\xff")) {
		t.Errorf("binary metadata: %q", v)
	}
	for name := range got.Header {
		if strings.HasPrefix(name, ":") {
			t.Errorf("header %s", name)
		}
	}
}

// Clients retry a handler's own error as before. They would not retry one with headers.
func TestFailedCall(t *testing.T) {
	calls := 0
	f := start(t, setup{
		rules: `{id: users, match: {route: ` + unaryRoute + `}, limit: {rate: 1/1h, burst: 3}}`,
		guard: []middleware.Option{middleware.WithHeaders()},
		service: &service{unary: func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
			if calls++; calls == 1 {
				return nil, status.Error(codes.Unavailable, "again")
			}
			return new(pb.SimpleResponse), nil
		}},
		dial: []grpc.DialOption{grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {
			"maxAttempts": 2, "initialBackoff": "0.001s", "maxBackoff": "0.002s", "backoffMultiplier": 1,
			"retryableStatusCodes": ["UNAVAILABLE"]}}]}`)},
	})
	var header metadata.MD
	if code := f.call(f.context(), "ann", grpc.Header(&header)); code != codes.OK || calls != 2 || len(header.Get("ratelimit")) != 1 {
		t.Errorf("%v after %d calls, headers %v", code, calls, header)
	}
}

// A client with a retry policy waits as long as the guard says, and passes.
func TestClientRetries(t *testing.T) {
	f := start(t, setup{
		rules: `{id: users, match: {route: ` + unaryRoute + `}, by: ["rpc:response_status.message"], limit: {rate: 1/1s, burst: 1}}`,
		dial: []grpc.DialOption{grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {
			"maxAttempts": 4, "initialBackoff": "0.001s", "maxBackoff": "0.002s", "backoffMultiplier": 1,
			"retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]}`)},
	})
	ctx := f.context()
	begin := time.Now()
	f.want(ctx, "ann", codes.OK, codes.OK)
	if took := time.Since(begin); took < 900*time.Millisecond {
		t.Errorf("two calls at 1/s took %v", took)
	}
	if n := f.guard.Stats().Limited; n != 1 {
		t.Errorf("%d attempts were refused, want 1: the policy alone retries after 2 ms", n)
	}
}

func TestWaited(t *testing.T) {
	f := start(t, setup{rules: `{id: users, match: {route: ` + unaryRoute + `}, by: ["rpc:response_status.message"], limit: {rate: 1/1s, burst: 1, wait: 5s}}`})
	ctx := f.context()
	begin := time.Now()
	f.want(ctx, "ann", codes.OK, codes.OK)
	if took := time.Since(begin); took < 900*time.Millisecond || f.guard.Stats().Waited != 1 {
		t.Errorf("two calls at 1/s took %v, %d waited", took, f.guard.Stats().Waited)
	}
	cancelled, cancel := context.WithCancel(ctx)
	time.AfterFunc(20*time.Millisecond, cancel)
	f.want(cancelled, "ann", codes.Canceled)
	f.await("the end of the wait", func() bool { return f.guard.Stats().Gone == 1 })
}

// This checks the server's own status for a call that is canceled during its wait. No client sees
// it.
func TestCancelledStatus(t *testing.T) {
	rules := `{id: users, match: {route: shop/Find}, limit: {rate: 1/5m, burst: 1, wait: 10m}}`
	intercept := hpgrpc.UnaryServerInterceptor(start(t, setup{rules: rules}).guard)
	handler := func(context.Context, any) (any, error) { return new(pb.Empty), nil }
	call := func(ctx context.Context) codes.Code {
		_, err := intercept(ctx, new(pb.Empty), &grpc.UnaryServerInfo{FullMethod: "/shop/Find"}, handler)
		return status.Code(err)
	}
	if code := call(t.Context()); code != codes.OK {
		t.Fatal(code)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if code := call(ctx); code != codes.Canceled {
		t.Errorf("cancelled: %v", code)
	}
}

func TestServed(t *testing.T) {
	rule := func(serve string) string {
		return `{id: users, match: {route: ` + unaryRoute + `}, by: ["rpc:response_status.message"], limit: {rate: 1/1h, burst: 1, on_limit: serve` + serve + `}}`
	}
	f := start(t, setup{rules: rule(`, serve: {status: 503, body: "come back tomorrow"}`)})
	ctx := f.context()
	f.want(ctx, "ann", codes.OK)
	_, err := f.UnaryCall(ctx, &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Message: "ann"}})
	if s := status.Convert(err); s.Code() != codes.Unavailable || s.Message() != "come back tomorrow" {
		t.Errorf("%v", err)
	}

	f = start(t, setup{rules: rule(`, serve: {status: 200, body: "[]"}`)})
	f.want(ctx, "ann", codes.OK, codes.ResourceExhausted)

	f = start(t, setup{rules: rule(`, serve: {status: 200, body: "[]"}`), options: []hpgrpc.Option{
		hpgrpc.WithServed(func(_ context.Context, method string, request any, d rules.Decision) (any, error) {
			switch name := request.(*pb.SimpleRequest).GetResponseStatus().GetMessage(); name {
			case "ann":
				return &pb.SimpleResponse{Username: name + " of " + d.Rule + method}, nil
			case "bob":
				return nil, status.Error(codes.NotFound, "bob")
			}
			return nil, nil
		}),
	}})
	f.want(ctx, "ann", codes.OK)
	res, err := f.UnaryCall(ctx, &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Message: "ann"}})
	if err != nil || res.GetUsername() != "ann of users/"+unaryRoute {
		t.Errorf("%v %v", res, err)
	}
	f.want(ctx, "bob", codes.OK, codes.NotFound)
	f.want(ctx, "eve", codes.OK, codes.ResourceExhausted)
	if n := f.guard.Stats().Served; n != 3 {
		t.Errorf("%d were served, want 3", n)
	}
}

// A permit is held until the handler has returned, even if it panics.
func TestConcurrency(t *testing.T) {
	entered, open := make(chan struct{}), make(chan struct{})
	recovered := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (res any, err error) {
		defer func() {
			if v := recover(); v != nil {
				err = status.Errorf(codes.Internal, "%v", v)
			}
		}()
		return handler(ctx, req)
	}
	f := start(t, setup{
		rules:  `{id: one, match: {route: ` + unaryRoute + `}, limit: {concurrency: 1}}`,
		before: []grpc.UnaryServerInterceptor{recovered},
		service: &service{unary: func(_ context.Context, req *pb.SimpleRequest) (*pb.SimpleResponse, error) {
			switch req.GetResponseStatus().GetMessage() {
			case "slow":
				entered <- struct{}{}
				<-open
			case "panic":
				panic("the handler's own")
			}
			return new(pb.SimpleResponse), nil
		}},
	})
	ctx := f.context()
	f.want(ctx, "panic", codes.Internal)
	slow := make(chan codes.Code, 1)
	go func() { slow <- f.call(ctx, "slow") }()
	<-entered
	var trailer metadata.MD
	if code := f.call(ctx, "other", grpc.Trailer(&trailer)); code != codes.Unavailable {
		t.Errorf("beside another: %v", code)
	}
	if got := trailer.Get("grpc-retry-pushback-ms"); len(got) != 1 || got[0] < "1" {
		t.Errorf("pushback %q", got)
	}
	close(open)
	if code := <-slow; code != codes.OK {
		t.Errorf("the first: %v", code)
	}
	f.await("the permit", func() bool { return f.call(ctx, "other") == codes.OK })
}

// The time of a handler is charged while it runs.
func TestTime(t *testing.T) {
	open := make(chan struct{})
	f := start(t, setup{
		rules: `{id: r, match: {route: ` + unaryRoute + `}, count: ms, limit: {rate: 1ms/1h, burst: 50ms}}`,
		service: &service{unary: func(_ context.Context, req *pb.SimpleRequest) (*pb.SimpleResponse, error) {
			if req.GetResponseStatus().GetMessage() == "slow" {
				<-open
			}
			return new(pb.SimpleResponse), nil
		}},
	})
	ctx := f.context()
	slow := make(chan codes.Code, 1)
	go func() { slow <- f.call(ctx, "slow") }()
	f.await("the charge", func() bool { return !f.guard.Check(middleware.Request{Pattern: unaryRoute}).Allowed })
	f.want(ctx, "other", codes.ResourceExhausted)
	close(open)
	if code := <-slow; code != codes.OK {
		t.Errorf("the first: %v", code)
	}
}

// Costs of handlers are charged at their end: the size of messages and units.
func TestCosts(t *testing.T) {
	var size atomic.Int64
	unary := func(ctx context.Context, req *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		middleware.AddCost(ctx, 5)
		middleware.AddCost(ctx, int64(req.GetResponseSize()))
		res := &pb.SimpleResponse{Payload: &pb.Payload{Body: make([]byte, 1000)}}
		size.Store(int64(proto.Size(res)))
		return res, nil
	}
	for count, burst := range map[string]int{"bytes": 1500, "units": 8} {
		t.Run(count, func(t *testing.T) {
			f := start(t, setup{
				rules:   `{id: r, match: {route: ` + unaryRoute + `}, count: ` + count + `, limit: {rate: 1/1h, burst: ` + strconv.Itoa(burst) + `}}`,
				service: &service{unary: unary},
			})
			f.want(f.context(), "ann", codes.OK, codes.OK, codes.ResourceExhausted)
			if n := f.guard.Stats().Charged; n != 2 {
				t.Errorf("%d were charged", n)
			}
		})
	}
	if size.Load() < 1000 || size.Load() > 1500 {
		t.Errorf("a message of %d bytes tests nothing", size.Load())
	}
}
