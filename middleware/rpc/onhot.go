package rpc

import (
	"context"
	"maps"
	"net/http"
	"net/url"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// Run calls a handler of the framework once for several unary calls. ctx and r have only what
// identifies the answer: the context nothing of a caller, and r the host and the metadata that the
// rule's on_hot names, with the names of net/http. message is a copy. Run returns the response or
// the code of the handler's error. It returns neither if the answer has more than a message.
type Run func(ctx context.Context, handler any, method string, r *http.Request, message proto.Message) (response any, code Code)

// BeginUnary is Begin for a unary call. If a rule names its method and has on_hot, and the call's key
// is hot, the call may be answered together with others that have the same message: Response is
// the answer then. handler is the framework's, for the adapter's Run.
func (a *Adapter) BeginUnary(ctx context.Context, method string, origin, message, handler any) Call {
	return a.beginCall(ctx, method, origin, message, handler, nil)
}

// share answers a call of a hot key together with others. It returns the answer, or nil with d or a
// refusal, and the metadata that says which.
func (a *Adapter) share(req middleware.Request, message proto.Message, origin, handler any, d rules.Decision) (proto.Message, http.Header, rules.Decision) {
	sent, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(message)
	call := a.request(req.Context, origin)
	if err != nil || call == nil {
		return nil, nil, d
	}
	answer := make(http.Header)
	shared := a.guard.Share(&middleware.Exchange{
		Request: req, HTTP: identity(call, req.Pattern, string(sent)), Header: answer,
		Lead: func() http.Handler {
			return &run{a, handler, req.Pattern, message.ProtoReflect().Type(), sent}
		},
	}, &d)
	header := http.Header{"Cache-Status": answer["Cache-Status"]}
	switch shared.Outcome {
	case middleware.Stored, middleware.Joined, middleware.Led:
		if known, ok := a.responses.Load(req.Pattern); ok {
			response := known.(protoreflect.MessageType).New().Interface()
			if (proto.UnmarshalOptions{AllowPartial: true}).Unmarshal(shared.Body, response) == nil {
				return response, header, d
			}
		}
	case middleware.Left:
		d = rules.Decision{Reason: d.Reason} // refused by the end of its context
	}
	return nil, header, d
}

// identity returns the request that identifies the answer to a call: its target has the method and
// the message.
func identity(call *http.Request, method, message string) *http.Request {
	header := maps.Clone(call.Header)
	for _, name := range []string{"Accept-Encoding", "If-None-Match", "If-Modified-Since"} { // of HTTP, not of the call
		delete(header, name)
	}
	r := &http.Request{
		Method: http.MethodGet, URL: &url.URL{Path: "/" + method, RawQuery: message}, Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: header, Host: call.Host, TLS: call.TLS, Body: http.NoBody,
	}
	return r.WithContext(call.Context())
}

// run is a run of a handler for several calls, as a handler of net/http.
type run struct {
	adapter *Adapter
	handler any
	method  string
	message protoreflect.MessageType
	sent    []byte
}

func (x *run) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	message := x.message.New().Interface()
	if (proto.UnmarshalOptions{AllowPartial: true}).Unmarshal(x.sent, message) != nil {
		middleware.Withhold(w)
		return
	}
	result, code := x.adapter.run(r.Context(), x.handler, x.method, r, message)
	response, ok := result.(proto.Message)
	switch {
	case code.failed():
		w.WriteHeader(http.StatusInternalServerError)
		return
	case code != 0 || !ok:
		middleware.Withhold(w)
		return
	}
	body, err := proto.MarshalOptions{AllowPartial: true}.Marshal(response)
	if err != nil {
		middleware.Withhold(w)
		return
	}
	x.adapter.responses.Store(x.method, response.ProtoReflect().Type())
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(body)
}

// failed reports whether the server has failed, so that an older answer is better than none.
func (c Code) failed() bool {
	switch c {
	case unknown, DeadlineExceeded, internalError, unavailable, dataLoss:
		return true
	}
	return false
}
