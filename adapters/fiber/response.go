package hpfiber

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"

	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// maxDrained is the number of bytes of a refused request's body that are read so that the
// connection can be used again. It is the same as in net/http.
const maxDrained = 256 << 10

// drain reads the rest of the body of a request that is not served, or makes the connection
// close. Otherwise fasthttp would treat the rest of a stream as the next request.
func drain(c fiber.Ctx) {
	if !c.Request().IsBodyStream() {
		return
	}
	if _, err := io.CopyN(io.Discard, c.Request().BodyStream(), maxDrained); !errors.Is(err, io.EOF) {
		c.RequestCtx().SetConnectionClose()
	}
}

// serve calls the handler of a request whose ticket has to be ended.
func serve(c fiber.Ctx, ticket *middleware.Ticket) error {
	s := &served{ticket: ticket}
	ticket.Start()
	user := c.Context()
	if ticket.Counts(rules.Units) {
		var ctx context.Context
		ctx, s.units = middleware.CollectCost(user)
		c.SetContext(ctx)
	}
	passed := false
	defer func() {
		c.SetContext(user)
		switch in := c.RequestCtx(); {
		case passed && in.Hijacked():
			s.endWithConnection(in)
		case passed && in.Response.IsBodyStream():
			s.endWithStream(&in.Response)
		case !in.IsHead() && hasBody(&in.Response):
			s.end(int64(len(in.Response.Body())))
		default:
			s.end(0)
		}
	}()
	err := c.Next()
	passed = true
	return err
}

// hasBody reports whether the body of the response, if it has one, is sent.
func hasBody(r *fasthttp.Response) bool {
	status := r.StatusCode()
	return !r.IsBodyStream() && !r.SkipBody && status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// served is a request whose ticket has to be ended.
type served struct {
	ticket *middleware.Ticket
	units  func() int64 // nil if no rule counts units
	ended  atomic.Bool
}

// end ends the ticket, once, with the number of bytes of the response.
func (s *served) end(n int64) {
	if s.ended.Swap(true) {
		return
	}
	cost := middleware.Cost{Bytes: n}
	if s.units != nil {
		cost.Units = s.units()
	}
	s.ticket.End(cost)
}

// endWithConnection ends the ticket when the function that takes over the connection returns:
// fasthttp then closes the values of the request. If the connection has been closed before,
// fasthttp drops the values without closing them. The ticket then ends when the connection is
// found closed or, if that cannot be seen, when the garbage collector finds the values.
func (s *served) endWithConnection(in *fasthttp.RequestCtx) {
	taken := &takenConnection{s}
	runtime.AddCleanup(taken, func(s *served) { s.end(0) }, s)
	in.SetUserValue(taken, taken)
	conn := in.Conn()
	if c, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = c.NetConn()
	}
	if c, ok := conn.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			s.endOnceClosed(raw)
		}
	}
}

// lookEvery is the time between two looks at whether a connection is closed.
const lookEvery = 500 * time.Millisecond

// endOnceClosed ends the ticket when the connection is found closed.
func (s *served) endOnceClosed(conn syscall.RawConn) {
	time.AfterFunc(lookEvery, func() {
		switch {
		case s.ended.Load():
		case conn.Control(func(uintptr) {}) != nil:
			s.end(0)
		default:
			s.endOnceClosed(conn)
		}
	})
}

// takenConnection is a value of a request whose connection a handler takes over.
type takenConnection struct{ *served }

func (c *takenConnection) Close() error {
	c.end(0)
	return nil
}

// endWithStream ends the ticket when the response's stream is closed.
func (s *served) endWithStream(r *fasthttp.Response) {
	measured := &meteredBody{Reader: r.BodyStream(), served: s}
	size := r.Header.ContentLength()
	if limited, ok := measured.Reader.(*io.LimitedReader); ok && size < 0 {
		size = int(limited.N) // as in fasthttp
	}
	// A response closes its stream when it gets another one. So everything except the stream
	// moves to a response without one.
	var header fasthttp.ResponseHeader
	r.Header.CopyTo(&header)
	immediate, skip, streams := r.ImmediateHeaderFlush, r.SkipBody, r.StreamBody
	*r = fasthttp.Response{ImmediateHeaderFlush: immediate, SkipBody: skip, StreamBody: streams}
	header.CopyTo(&r.Header)
	r.SetBodyStream(measured, size)
}

// meteredBody is the body of a response, which is measured while it is sent.
type meteredBody struct {
	io.Reader
	*served
	n int64
}

func (s *meteredBody) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.n += int64(n)
	if err != nil {
		s.end(s.n)
	}
	return n, err
}

// WriteTo lets the system send files.
func (s *meteredBody) WriteTo(w io.Writer) (int64, error) {
	n, err := io.Copy(w, s.Reader)
	s.n += n
	return n, err
}

func (s *meteredBody) Close() (err error) {
	if c, ok := s.Reader.(io.Closer); ok {
		err = c.Close()
	}
	s.end(s.n)
	return err
}

// CloseWithError passes the cause on to the response's stream. It is called after Close.
func (s *meteredBody) CloseWithError(cause error) error {
	if c, ok := s.Reader.(fasthttp.ReadCloserWithError); ok {
		return c.CloseWithError(cause)
	}
	return nil
}
