package rpc

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/hotparam/hotparam/middleware"
)

// Stream is a call whose messages are sent one by one. If a rule names fields of the message,
// the guard decides at the first message that is received or sent, or when the client has sent
// its last. Otherwise it decides when the stream is opened, so that a client that opens streams
// and sends nothing does not evade limits.
type Stream struct {
	adapter *Adapter
	ctx     context.Context
	method  string
	origin  any
	units   func() int64
	cancel  context.CancelFunc // nil if the guard decided when the stream was opened

	mu      sync.Mutex // held to decide
	call    Call
	taken   bool // whether TakeHeader has returned the call's header
	decided atomic.Bool
}

// Open opens a stream. Its arguments are those of Begin.
func (a *Adapter) Open(ctx context.Context, method string, origin any) *Stream {
	s := &Stream{adapter: a, method: method, origin: origin}
	s.ctx, s.units = middleware.CollectCost(ctx) // before the guard decides, since the handler gets the context at once
	if a.guard.ReadsMessage(Resource(method)) {
		s.ctx, s.cancel = context.WithCancel(s.ctx)
	} else {
		s.Decide(nil)
	}
	return s
}

// Context returns the handler's context. It ends if the stream is refused.
func (s *Stream) Context() context.Context { return s.ctx }

// Decide makes the guard decide unless it has already. message is the received message or nil.
// Decide returns the refusal, or nil if the call passes. Any goroutine may call it; it waits if
// a rule says so.
func (s *Stream) Decide(message any) *Refusal {
	if !s.decided.Load() {
		s.decide(message)
	}
	return s.call.Refusal
}

func (s *Stream) decide(message any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.decided.Load() {
		return
	}
	s.call = s.adapter.beginCall(s.ctx, s.method, s.origin, message, nil, s.units)
	s.decided.Store(true)
	if s.call.Refusal != nil && s.cancel != nil {
		s.cancel()
	}
}

// Refusal returns the answer that replaces the handler's, or nil.
func (s *Stream) Refusal() *Refusal {
	if !s.decided.Load() {
		return nil
	}
	return s.call.Refusal
}

// TakeHeader returns the Header of a stream that passes, once, and nil before and afterwards. The
// sender calls it after Decide and once the handler has returned: metadata that waits for the
// first message can still be a trailer. The receiver may be another goroutine.
func (s *Stream) TakeHeader() http.Header {
	if s.taken || !s.decided.Load() {
		return nil
	}
	s.taken = true
	return s.call.Header
}

// Sent records that the server has sent a message to the client. It is called after Decide.
func (s *Stream) Sent(message any) { s.call.Sent(message) }

// End must be called once the handler has returned, even if it panics; see [Call.End].
func (s *Stream) End() {
	if s.cancel != nil {
		s.cancel() // ends a wait in Decide
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decided.Store(true) // from here on Decide decides nothing
	s.call.End()
}
