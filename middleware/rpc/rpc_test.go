package rpc

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/middleware/middlewaretest"
	"github.com/hotparam/hotparam/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func noRequest(context.Context, any) *http.Request { return nil }

func text(value string) *wrapperspb.StringValue { return wrapperspb.String(value) }

const byValue = `{id: values, match: {route: shop.Search/Find}, by: ["rpc:value"], limit: {rate: 1/1h, burst: 1}}`

func TestBegin(t *testing.T) {
	asked := 0
	origin := new(int)
	a := New(middlewaretest.NewGuard(t, `{id: r, match: {route: shop.Search/Find}, by: ["rpc:value", "header:x-plan"], limit: {rate: 1/1h, burst: 1}}`),
		func(ctx context.Context, from any) *http.Request {
			if asked++; from != origin || ctx != t.Context() {
				t.Errorf("asked about %v, %v", ctx, from)
			}
			return &http.Request{Header: http.Header{"X-Plan": {"free"}}}
		}, nil)
	for i, method := range []string{"/shop.Search/Find", "shop.Search/Find"} {
		c := a.Begin(t.Context(), method, origin, text("phone"))
		c.End()
		if refused := c.Refusal != nil; refused != (i > 0) || asked != i+1 {
			t.Errorf("%s: refused %t, asked %d times", method, refused, asked)
		}
	}
	for i, message := range []any{text("boat"), nil, "not of protobuf"} { // the last two have no field
		if c := a.Begin(t.Context(), "shop.Search/Find", origin, message); (c.Refusal != nil) != (i == 2) {
			t.Errorf("%v: %+v", message, c.Refusal)
		}
	}
	before := asked
	if c := a.Begin(t.Context(), "shop.Search/Other", origin, text("phone")); c.Refusal != nil || asked != before {
		t.Errorf("no rule: refusal %+v, asked %d times", c.Refusal, asked-before)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		d       rules.Decision
		code    Code
		message string
		wait    time.Duration
		quota   bool
	}{
		{rules.Decision{Reason: rules.ReasonLimited, RetryAfter: 1500 * time.Millisecond}, resourceExhausted, "too many requests for these parameters; retry in 2 s", 1500 * time.Millisecond, true},
		{rules.Decision{Reason: rules.ReasonLimited, RetryAfter: time.Second, Backoff: 4 * time.Second}, resourceExhausted, "too many requests for these parameters; retry in 4 s", 4 * time.Second, true},
		{rules.Decision{Reason: rules.ReasonLimited}, resourceExhausted, "too many requests for these parameters", 0, true},
		{rules.Decision{Reason: rules.ReasonLocked, RetryAfter: time.Minute}, resourceExhausted, "too many requests for these parameters; retry in 60 s", time.Minute, true},
		{rules.Decision{Reason: rules.ReasonBusy}, unavailable, "no room for such requests now; retry in 1 s", time.Second, false},
		{rules.Decision{Reason: rules.ReasonUnavailable, RetryAfter: 3 * time.Second}, unavailable, "no room for such requests now; retry in 3 s", 3 * time.Second, false},
		{rules.Decision{Reason: rules.ReasonBlocked}, permissionDenied, "not allowed", 0, false},
		{rules.Decision{Reason: rules.ReasonNoMatch}, permissionDenied, "not allowed", 0, false},
		{rules.Decision{Reason: rules.ReasonUnread}, invalidArgument, "the request cannot be read", 0, false},
	} {
		r := NewRefusal(t.Context(), c.d, c.d.Answer(), "m")
		if r.Code != c.code || r.Message != c.message || r.Wait != c.wait || r.OverQuota() != c.quota || r.Request != "m" {
			t.Errorf("%v: %+v, over quota %t", c.d.Reason, r, r.OverQuota())
		}
		if want := strings.ToUpper(c.d.Reason.String()); r.Reason() != want {
			t.Errorf("reason %s, want %s", r.Reason(), want)
		}
	}
}

func TestServed(t *testing.T) {
	served := rules.Decision{Reason: rules.ReasonServed, RetryAfter: time.Second}
	for status, want := range map[int]Code{200: 8, 204: 8, 302: 8, 400: 3, 401: 16, 403: 7, 404: 5, 409: 10, 412: 9, 418: 8, 429: 8, 500: 13, 501: 12, 502: 14, 503: 14, 504: 4} {
		r := NewRefusal(t.Context(), served, rules.Answer{Status: status, Body: []byte("tomorrow\n")}, nil)
		if r.Code != want || r.Message != "tomorrow" || r.Wait != time.Second {
			t.Errorf("%d: %+v, want code %d", status, r, want)
		}
	}
	for _, body := range []string{"", " \n", "\xff", strings.Repeat("x", 1025)} {
		if r := NewRefusal(t.Context(), served, rules.Answer{Status: 200, Body: []byte(body)}, nil); r.Message != "too many requests for these parameters" {
			t.Errorf("%.9q: %q", body, r.Message)
		}
	}
}

func TestEndedContext(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for ctx, want := range map[context.Context]Code{cancelled: Canceled, late: DeadlineExceeded} {
		r := NewRefusal(ctx, rules.Decision{Reason: rules.ReasonLimited, RetryAfter: time.Hour}, rules.Answer{}, nil)
		if r.Code != want || r.Wait != 0 || r.OverQuota() || r.Message != ctx.Err().Error() {
			t.Errorf("%+v, want code %d", r, want)
		}
	}
}

func TestMetadata(t *testing.T) {
	got := metadata(map[string][]string{
		"Retry-After": {"1"}, "Ratelimit": {"a", "b"}, "X-Own": {"x"},
		"Content-Type": {"text/plain"}, "Content-Length": {"1"}, "Cache-Control": {"no-store"}, "Connection": {"close"},
		"Grpc-Status": {"0"}, "Connect-Accept-Encoding": {"gzip"},
	})
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"Ratelimit", "Retry-After", "X-Own"}) || len(got["Ratelimit"]) != 2 {
		t.Errorf("%v", got)
	}
	if got := metadata(map[string][]string{"Content-Type": {"text/plain"}}); got != nil {
		t.Errorf("%v", got)
	}
}

// A stream is decided when it is opened if no rule names a field, and otherwise at its first
// message.
func TestStream(t *testing.T) {
	guard := middlewaretest.NewGuard(t, byValue+"\n"+`{id: all, match: {route: shop.Search/Watch}, limit: {rate: 1/1h, burst: 1}}`, middleware.WithHeaders())
	a := New(guard, noRequest, nil)
	open := func(method string) *Stream { return a.Open(t.Context(), method, nil) }

	opened := open("/shop.Search/Watch")
	if opened.Refusal() != nil || opened.TakeHeader().Get("RateLimit") == "" || opened.TakeHeader() != nil {
		t.Errorf("%+v", opened.Refusal())
	}
	if s := open("/shop.Search/Watch"); s.Refusal() == nil || s.TakeHeader() != nil || s.Refusal().Header.Get("Retry-After") == "" || s.Decide(text("a")) != s.Refusal() {
		t.Errorf("%+v", s.Refusal())
	}

	for i, want := range []bool{false, true} {
		s := open("/shop.Search/Find")
		if s.Refusal() != nil || s.TakeHeader() != nil || s.Context().Err() != nil {
			t.Errorf("before the first message: %+v", s.Refusal())
		}
		for range 3 {
			if got := s.Decide(text("a")) != nil; got != want || (s.Context().Err() != nil) != want {
				t.Errorf("stream %d: refused %t, %v", i, got, s.Context().Err())
			}
		}
		s.End()
		if s.Context().Err() == nil {
			t.Error("the context goes on")
		}
	}
	s := open("/shop.Search/Find")
	s.End()
	if s.Decide(text("a")) != nil { // there is no call any more
		t.Error("decided after its end")
	}
}

// If a handler returns while one of its goroutines waits for the decision, the wait ends.
func TestEndEndsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guard := middlewaretest.NewGuard(t, `{id: r, match: {route: shop.Search/Find}, by: ["rpc:value"], limit: {rate: 1/1m, burst: 1, wait: 5m}}`)
		a := New(guard, noRequest, nil)
		if s := a.Open(t.Context(), "shop.Search/Find", nil); s.Decide(text("a")) != nil {
			t.Fatal("refused")
		}
		s := a.Open(t.Context(), "shop.Search/Find", nil)
		got := make(chan *Refusal, 1)
		go func() { got <- s.Decide(text("a")) }()
		synctest.Wait()
		begin := time.Now()
		s.End()
		if r := <-got; r == nil || r.Code != Canceled || time.Since(begin) > 0 {
			t.Errorf("%+v after %v", r, time.Since(begin))
		}
	})
}

func TestCosts(t *testing.T) {
	message := text(strings.Repeat("x", 100))
	a := New(middlewaretest.NewGuard(t, `{id: r, match: {route: shop.Search/Find}, count: bytes, limit: {rate: 1/1h, burst: 100}}`), noRequest, nil)
	c := a.Begin(t.Context(), "shop.Search/Find", nil, nil)
	c.Sent("not of protobuf")
	if c.Sent(message); c.bytes != int64(proto.Size(message)) {
		t.Errorf("%d bytes", c.bytes)
	}
	c.End()
	c.End() // charges nothing more
	if c := a.Begin(t.Context(), "shop.Search/Find", nil, nil); c.Refusal == nil {
		t.Error("the cost was not charged")
	}
}

// The time of calls and streams is charged while they run.
func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(middlewaretest.NewGuard(t, `{id: r, match: {route: shop.Search/Find}, count: ms, limit: {rate: 1ms/1h, burst: 500ms}}`), noRequest, nil)
		c, s := a.Begin(t.Context(), "shop.Search/Find", nil, nil), a.Open(t.Context(), "shop.Search/Find", nil)
		for _, refused := range []bool{false, true} { // 2 × 100 ms are charged, then 2 × 300 ms or more
			time.Sleep(150 * time.Millisecond)
			other := a.Begin(t.Context(), "shop.Search/Find", nil, nil)
			if (other.Refusal != nil) != refused {
				t.Errorf("%+v, want refused %t", other.Refusal, refused)
			}
			other.End()
			time.Sleep(100 * time.Millisecond)
		}
		c.End()
		s.End()
	})
}

// Units that a handler adds are charged, even through a context obtained before the guard decided,
// and even if they are added before that.
func TestStreamUnits(t *testing.T) {
	type own struct{}
	a := New(middlewaretest.NewGuard(t, `{id: r, match: {route: shop.Search/Find}, by: ["rpc:value"], count: units, limit: {rate: 1/1h, burst: 5}}`), noRequest, nil)
	for i, want := range []bool{false, true} {
		s := a.Open(context.WithValue(t.Context(), own{}, "own"), "shop.Search/Find", nil)
		ctx, cancel := context.WithCancel(s.Context())
		middleware.AddCost(ctx, 2)
		if got := s.Decide(text("a")) != nil; got != want {
			t.Errorf("stream %d: refused %t", i, got)
		}
		middleware.AddCost(ctx, 3)
		if ctx.Value(own{}) != "own" {
			t.Error("the context has lost what the server had put into it")
		}
		cancel()
		s.End()
	}
	if c := a.Begin(t.Context(), "shop.Search/Find", nil, text("b")); c.Refusal != nil {
		t.Errorf("%+v", c.Refusal)
	}
}

// The program's own function may panic, like a handler.
func TestPanicOfAnswer(t *testing.T) {
	own := errors.New("own")
	guard := middlewaretest.NewGuard(t, byValue, middleware.WithLimited(func(http.ResponseWriter, *http.Request, rules.Decision) { panic(own) }))
	a := New(guard, noRequest, nil)
	s := a.Open(t.Context(), "shop.Search/Find", nil)
	s.Decide(text("a"))
	s = a.Open(t.Context(), "shop.Search/Find", nil)
	func() {
		defer func() {
			if err, _ := recover().(error); !errors.Is(err, own) {
				t.Error("the panic was lost")
			}
		}()
		s.Decide(text("a"))
	}()
	s.End() // is not locked out
}

// These resources have a rule that reads the message, for its by, its match, or an exception.
func TestReadsMessage(t *testing.T) {
	for rule, want := range map[string]bool{
		`{id: r, match: {route: shop/Find}, by: ["rpc:user.id"], limit: 1/s}`:                     true,
		`{id: r, match: {route: shop/Find, query: {"rpc:plan": free}}, limit: 1/s}`:               true,
		`{id: r, match: {route: "*"}, by: ["rpc:user.id"], limit: 1/s}`:                           true,
		`{id: r, match: {route: shop/Find}, by: ["header:x-plan"], limit: {rate: 1/s, burst: 1}}`: false,
		`{id: r, match: {route: shop/Other}, by: ["rpc:user.id"], limit: 1/s}`:                    false,
		`{id: r, match: {route: "GET /x"}, limit: 1/s}`:                                           false,
	} {
		if got := middlewaretest.NewGuard(t, rule).ReadsMessage("shop/Find"); got != want {
			t.Errorf("%s: %t", rule, got)
		}
	}
}
