package rpc

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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
}

// Adapter passes the calls of a server through a guard. It is safe for concurrent use.
type Adapter struct {
	guard     Guard
	request   func(ctx context.Context, origin any) *http.Request
	questions sync.Pool // of *question
}

// New returns an adapter to g. request returns a call's metadata as the header of a request,
// its peer as RemoteAddr and its path as URL. Its origin is the argument of Begin or Open. It is
// called only if a rule or an option needs it.
func New(g Guard, request func(ctx context.Context, origin any) *http.Request) *Adapter {
	a := &Adapter{guard: g, request: request}
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

	ticket *middleware.Ticket
	start  time.Time
	units  func() int64 // nil if no rule counts units
	sized  bool         // whether a rule counts bytes
	bytes  int64
}

// Begin makes the guard decide on a call, and waits if a rule says so. method is the full name,
// with or without the first slash: "/shop.Search/Find". message is the request's message, or
// nil if there is none.
func (a *Adapter) Begin(ctx context.Context, method string, origin, message any) Call {
	return a.beginCall(ctx, method, origin, message, nil)
}

// beginCall implements Begin. A non-nil units returns the cost that ctx collects.
func (a *Adapter) beginCall(ctx context.Context, method string, origin, message any, units func() int64) Call {
	q := a.questions.Get().(*question)
	q.adapter, q.ctx, q.origin, q.message = a, ctx, origin, messageOf(message)
	d, ticket := a.guard.Begin(middleware.Request{Context: ctx, Pattern: Resource(method), MakeHTTP: q.makeHTTP, Field: q.field})
	c := Call{Context: ctx, ticket: ticket}
	answer := d.Answer()
	q.adapter, q.ctx, q.origin, q.message = nil, nil, nil, nil
	a.questions.Put(q)
	if !d.Allowed {
		c.Refusal = NewRefusal(ctx, d, answer, message)
		return c
	}
	c.Header = metadata(answer.Header)
	if ticket != nil {
		c.start = time.Now()
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
// sent, the time since Begin, and the units that the handler added by [middleware.AddCost].
func (c *Call) End() {
	if c.ticket == nil {
		return
	}
	cost := middleware.Cost{Bytes: atomic.LoadInt64(&c.bytes), Time: time.Since(c.start)}
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
