package rpc

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/hotparam/hotparam/internal/protofield"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// Guard is a *hotparam.Hotparam or a [*middleware.Guard].
type Guard interface {
	Begin(req middleware.Request) (rules.Decision, *middleware.Ticket)
	ReadsMessage(resource string) bool
	Share(x *middleware.Exchange, d *rules.Decision) middleware.Shared
}

// Adapter passes the calls of a server through a guard. It is safe for concurrent use.
type Adapter struct {
	guard     Guard
	request   func(ctx context.Context, origin any) *http.Request
	run       Run       // nil if no calls are answered together
	questions sync.Pool // of *question
	responses sync.Map  // types of responses, as protoreflect.MessageType, by method
}

// New returns an adapter to g. request returns a call's metadata as the header of a request,
// its peer as RemoteAddr and its path as URL. Its origin is the argument of Begin or Open. It is
// called only if a rule or an option needs it. A nil run means that no calls are answered together.
func New(g Guard, request func(ctx context.Context, origin any) *http.Request, run Run) *Adapter {
	a := &Adapter{guard: g, request: request, run: run}
	a.questions.New = func() any {
		q := new(question)
		q.makeHTTP, q.field = q.http, q.appendField
		return q
	}
	return a
}

// Call is a call that the guard has decided on. End must be called once the handler has
// returned, even if it panics.
type Call struct {
	// Context is the handler's context.
	Context context.Context
	// Header is metadata to send if the call passes, with the names of net/http. It may be nil.
	Header http.Header
	// Refusal is the answer that replaces the handler's, or nil if the call passes.
	Refusal *Refusal
	// Response is the answer that the call has got together with others, or nil; see BeginUnary.
	Response proto.Message

	ticket *middleware.Ticket
	units  func() int64 // nil if no rule counts units
	sized  bool         // whether a rule counts bytes
	bytes  int64
}

// Begin makes the guard decide on a call, and waits if a rule says so. method is the full name,
// with or without the first slash: "/shop.Search/Find". message is the request's message, or
// nil if there is none.
func (a *Adapter) Begin(ctx context.Context, method string, origin, message any) Call {
	return a.beginCall(ctx, method, origin, message, nil, nil)
}

// beginCall implements Begin, and BeginUnary with a non-nil handler. A non-nil units returns the
// cost that ctx collects.
func (a *Adapter) beginCall(ctx context.Context, method string, origin, message, handler any, units func() int64) Call {
	q := a.questions.Get().(*question)
	q.adapter, q.ctx, q.origin, q.message = a, ctx, origin, messageOf(message)
	req := middleware.Request{Context: ctx, Pattern: Resource(method), MakeHTTP: q.makeHTTP, Field: q.field}
	own, ok := message.(proto.Message)
	if ok && handler != nil && a.run != nil {
		req.Steps = middleware.CountStep
	}
	d, ticket := a.guard.Begin(req)
	var response proto.Message
	var header http.Header
	if d.Reason == rules.ReasonShared {
		response, header, d = a.share(req, own, origin, handler, d)
		if response == nil && d.Allowed {
			req.Steps = middleware.LimitStep
			d, ticket = a.guard.Begin(req)
		}
	}
	c := Call{Context: ctx, Response: response, ticket: ticket}
	answer := d.Answer()
	q.adapter, q.ctx, q.origin, q.message = nil, nil, nil, nil
	a.questions.Put(q)
	if !d.Allowed {
		c.Refusal = NewRefusal(ctx, d, answer, message)
		return c
	}
	if response != nil {
		c.Header = header
		return c
	}
	c.Header = metadata(answer.Header)
	if header != nil {
		if c.Header == nil {
			c.Header = make(http.Header)
		}
		maps.Copy(c.Header, header)
	}
	if ticket != nil {
		if units == nil {
			ticket.Start()
		} else {
			ticket.StartStream()
		}
		c.sized = ticket.Counts(rules.Bytes)
		if c.units = units; units == nil && ticket.Counts(rules.Units) {
			c.Context, c.units = middleware.CollectCost(ctx)
		}
	}
	return c
}

// Sent records that the server has sent a message to the client.
func (c *Call) Sent(message any) {
	if c.sized {
		atomic.AddInt64(&c.bytes, sizeOf(message))
	}
}

// End releases the call's permits, and charges its cost: the size of the messages that were
// sent, the rest of the time since Begin, and the units that the handler added by
// [middleware.AddCost].
func (c *Call) End() {
	if c.ticket == nil {
		return
	}
	cost := middleware.Cost{Bytes: atomic.LoadInt64(&c.bytes)}
	if c.units != nil {
		cost.Units = c.units()
	}
	c.ticket.End(cost)
	c.ticket = nil
}

// Resource returns the name of a method in rules.
func Resource(method string) string { return strings.TrimPrefix(method, "/") }

// question holds the data that a guard may ask about a call. It is pooled with its functions,
// so that a call allocates nothing.
type question struct {
	adapter *Adapter
	ctx     context.Context
	origin  any
	message proto.Message

	makeHTTP func() *http.Request
	field    func(name string, values []string) []string
}

func (q *question) http() *http.Request { return q.adapter.request(q.ctx, q.origin) }

func (q *question) appendField(name string, values []string) []string {
	return protofield.Append(values, q.message, name)
}

// messageOf returns a protobuf message, or nil for a message of another codec.
func messageOf(message any) proto.Message {
	switch m := message.(type) {
	case proto.Message:
		return m
	case protoadapt.MessageV1:
		return protoadapt.MessageV2Of(m)
	}
	return nil
}

// sizeOf returns the size of a message before compression, or 0 if its codec is unknown.
func sizeOf(message any) int64 {
	if m := messageOf(message); m != nil {
		return int64(proto.Size(m))
	}
	return 0
}
