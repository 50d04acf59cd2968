package rpc

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/hotparam/hotparam/middleware/middlewaretest"
)

// newHotAdapter returns an adapter to a method whose rule has on_hot. Its key, for all messages, is hot.
func newHotAdapter(t *testing.T, request func(ctx context.Context, origin any) *http.Request, run Run) *Adapter {
	t.Helper()
	guard := middlewaretest.NewGuard(t, `{id: r, match: {route: shop.Search/Find}, hot: 1000000/s, limit: {rate: 1/1h, burst: 9}, on_hot: {cache: 1m, stale: 1m, vary: ["header:x-language"]}}`)
	middlewaretest.Heat(t, guard, "r shop.Search/Find")
	return New(guard, request, run)
}

func sentCall(ctx context.Context, origin any) *http.Request {
	header, _ := origin.(http.Header)
	return (&http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/shop.Search/Find"}, Header: header, Host: "shop"}).WithContext(ctx)
}

// The answer depends on the message and on the metadata in vary, and each call gets its own copy.
func TestUnaryTogether(t *testing.T) {
	runs := 0
	a := newHotAdapter(t, sentCall, func(_ context.Context, handler any, method string, r *http.Request, message proto.Message) (any, Code) {
		runs++
		if handler != "handler" || method != "shop.Search/Find" || len(r.Header) > 1 || r.Host != "shop" {
			t.Errorf("run with %v, %s, %s, %v", handler, method, r.Host, r.Header)
		}
		m := message.(*wrapperspb.StringValue)
		m.Value += " in " + r.Header.Get("X-Language")
		return m, 0
	})
	ask := func(message *wrapperspb.StringValue, language string) proto.Message {
		c := a.BeginUnary(t.Context(), "/shop.Search/Find", http.Header{
			"X-Language": {language}, "X-User": {"ann"}, "If-None-Match": {"*"}, "Accept-Encoding": {"gzip"},
		}, message, "handler")
		defer c.End()
		return c.Response
	}
	for _, value := range []string{"phone", "boat"} {
		for _, language := range []string{"de", "fr"} {
			message := text(value)
			first, second := ask(message, language), ask(message, language)
			if first == second || !proto.Equal(first, second) || first.(*wrapperspb.StringValue).Value != value+" in "+language || message.Value != value {
				t.Errorf("%v, %v for %v in %s", first, second, message, language)
			}
		}
	}
	if runs != 4 {
		t.Errorf("%d runs", runs)
	}
	for _, message := range []any{nil, "not of protobuf"} {
		if c := a.BeginUnary(t.Context(), "/shop.Search/Find", http.Header{}, message, "handler"); c.Response != nil || c.Refusal != nil {
			t.Errorf("%v: %+v", message, c)
		}
	}
	if c := a.Begin(t.Context(), "/shop.Search/Find", http.Header{}, text("phone")); c.Response != nil {
		t.Error("Begin has an answer of others")
	}
}

// Only a message without an error is shared.
func TestUnaryAlone(t *testing.T) {
	for name, c := range map[string]struct {
		response any
		code     Code
		how      string
	}{
		"refused by the handler": {text("x"), notFound, "hotparam; fwd=miss; detail=withheld"},
		"failed":                 {nil, unavailable, "hotparam; fwd=miss; detail=failed"},
		"of another codec":       {"text", 0, "hotparam; fwd=miss; detail=withheld"},
		"nothing":                {nil, 0, "hotparam; fwd=miss; detail=withheld"},
	} {
		a := newHotAdapter(t, sentCall, func(context.Context, any, string, *http.Request, proto.Message) (any, Code) {
			return c.response, c.code
		})
		got := a.BeginUnary(t.Context(), "shop.Search/Find", http.Header{}, text("phone"), "handler")
		if got.Response != nil || got.Refusal != nil || got.Header.Get("Cache-Status") != c.how {
			t.Errorf("%s: %+v", name, got)
		}
		got.End()
	}
	a := newHotAdapter(t, noRequest, func(context.Context, any, string, *http.Request, proto.Message) (any, Code) { return text("x"), 0 })
	if got := a.BeginUnary(t.Context(), "shop.Search/Find", nil, text("phone"), "handler"); got.Response != nil || got.Refusal != nil {
		t.Errorf("without metadata: %+v", got)
	}
}

// A call that ends while it waits for others is refused by its context.
func TestUnaryLeaves(t *testing.T) {
	entered, open := make(chan struct{}), make(chan struct{})
	a := newHotAdapter(t, sentCall, func(context.Context, any, string, *http.Request, proto.Message) (any, Code) {
		close(entered)
		<-open
		return text("x"), 0
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	c := a.BeginUnary(ctx, "shop.Search/Find", http.Header{}, text("phone"), "handler")
	if c.Refusal == nil || c.Refusal.Code != Canceled || len(c.Refusal.Header) > 0 {
		t.Errorf("%+v", c.Refusal)
	}
	close(open)
}
