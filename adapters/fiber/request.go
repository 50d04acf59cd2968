package hpfiber

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/gofiber/fiber/v3"
)

// fiberRequest is a request of Fiber in the form for a guard. All its strings are copies, since
// Fiber's are overwritten after the request. As a context, it is the request's context with the
// values that middleware has put into Locals.
type fiberRequest struct {
	context.Context
	c           fiber.Ctx
	path, query string
	made        *http.Request // made by toHTTP, or nil
	body        *body         // body of made
}

func newRequest(c fiber.Ctx) *fiberRequest {
	uri := c.Request().URI()
	path, query := uri.PathOriginal(), uri.QueryString()
	both := string(append(append(make([]byte, 0, 256), path...), query...)) // one allocation
	return &fiberRequest{Context: c.Context(), c: c, path: both[:len(path)], query: both[len(path):]}
}

// Value returns a value of the request's context or of its Locals.
func (r *fiberRequest) Value(key any) any {
	if v := r.Context.Value(key); v != nil {
		return v
	}
	return r.c.RequestCtx().UserValue(key)
}

// toHTTP returns the request as a net/http request, for rules and options that need one.
func (r *fiberRequest) toHTTP() *http.Request {
	in := r.c.Request()
	u := &url.URL{Path: r.path, RawQuery: r.query}
	if path, err := url.PathUnescape(r.path); err == nil {
		u.Path = path
		if u.EscapedPath() != r.path {
			u.RawPath = r.path
		}
	}
	h := make(http.Header)
	for name, value := range in.Header.All() {
		if key := http.CanonicalHeaderKey(string(name)); key != "Host" && key != "Transfer-Encoding" {
			h[key] = append(h[key], string(value))
		}
	}
	fasthttp := r.c.RequestCtx()
	out := &http.Request{
		Method: r.c.Method(), URL: u, RequestURI: string(in.Header.RequestURI()),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Host: string(in.Host()), RemoteAddr: fasthttp.RemoteAddr().String(), TLS: fasthttp.TLSConnectionState(),
	}
	if !in.Header.IsHTTP11() {
		out.Proto, out.ProtoMinor = "HTTP/1.0", 0
	}
	out = out.WithContext(r)
	r.body = newBody(r.c)
	out.Body, out.ContentLength = r.body, r.body.size
	if r.body.size == 0 {
		out.Body = http.NoBody
	}
	r.made = out
	return out
}

// end returns the body to the handler, and makes the guard release the part that it holds.
func (r *fiberRequest) end() {
	if r.made == nil {
		return
	}
	if r.body.stream != nil && r.body.touched {
		r.body.restore(r.c, r.made.Body)
	}
	_ = r.made.Body.Close()
}

// body is the body of a request as sent. It is in memory, unless the application has
// StreamRequestBody. If the guard has read from a stream, the stream is read to its end and
// replaced, since fasthttp cannot replace only the beginning of a stream. So a stream of unknown
// length is not read, and counts as a body that cannot be read.
type body struct {
	c       fiber.Ctx
	size    int64     // -1 if unknown
	stream  io.Reader // nil if the body is in memory
	memory  io.Reader // nil until it is first read: fasthttp rewrites a form of several parts
	touched bool
}

func newBody(c fiber.Ctx) *body {
	in := c.Request()
	b := &body{c: c, size: int64(in.Header.ContentLength())}
	if in.IsBodyStream() {
		b.stream = in.BodyStream()
	} else if b.size < 0 {
		b.size = int64(len(in.Body())) // the body was sent in chunks, or there is none
	}
	return b
}

func (b *body) Read(p []byte) (int, error) {
	if b.stream != nil {
		if b.size < 0 {
			return 0, io.ErrNoProgress
		}
		b.touched = true
		return b.stream.Read(p)
	}
	if b.memory == nil {
		b.memory = bytes.NewReader(b.c.Request().Body())
	}
	return b.memory.Read(p)
}

// Close does nothing: the body belongs to fasthttp.
func (b *body) Close() error { return nil }

// restore replaces the request's stream by the whole body, which it reads from read, the body
// that the guard has left. If that breaks off, the new stream ends with the error.
func (b *body) restore(c fiber.Ctx, read io.Reader) {
	text, err := io.ReadAll(io.LimitReader(read, b.size))
	var stream io.Reader = bytes.NewReader(text)
	if int64(len(text)) < b.size {
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		stream = io.MultiReader(stream, failed{err})
		c.RequestCtx().SetConnectionClose() // the rest of the body is not a request
	}
	c.Request().SetBodyStream(stream, int(b.size))
}

// failed is the rest of a body whose connection has failed.
type failed struct{ error }

func (f failed) Read([]byte) (int, error) { return 0, f.error }
