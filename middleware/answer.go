package middleware

import (
	"bytes"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/hotparam/hotparam/internal/answer"
	"github.com/hotparam/hotparam/rules"
)

// Answer returns the response to a request that the limit decided on: the headers that state
// the decision and, if it was refused, the rule's own response or the default one.
func (s *limitSpec) Answer(d rules.Decision) rules.Answer {
	d.From = nil
	var a rules.Answer
	if s.serves(&d) {
		serve := s.limit.Serve
		a.Status, a.Body = serve.Status, []byte(serve.Body)
		a.Header = map[string][]string{"Cache-Control": {"no-store"}} // since the response is not the handler's
		if serve.Type != "" {
			a.Header["Content-Type"] = []string{serve.Type}
		}
		setType(a.Header, a.Body)
	} else {
		a = d.Answer()
	}
	if a.Header == nil && s.headers != (headers{}) {
		a.Header = make(map[string][]string)
	}
	s.setHeaders(a.Header, &d)
	return a
}

// serves reports whether the limit's own response answers the decision.
func (s *limitSpec) serves(d *rules.Decision) bool {
	return d.Reason == rules.ReasonServed && s.limit.Serve != nil
}

// setHeaders sets the headers that state the limit in header.
func (s *limitSpec) setHeaders(header http.Header, d *rules.Decision) {
	if s.headers == (headers{}) {
		return
	}
	b := answer.NewBuffer()
	s.headers.add(b, d, s.quota.Load(), s.unit)
	b.SetHeaders(header)
	b.Free()
}

// writeRefusal writes the response to a refused request; see Answer. spec is the limit that
// decided, or nil.
func writeRefusal(w http.ResponseWriter, r *http.Request, d *rules.Decision, spec *limitSpec) {
	if spec != nil && spec.serves(d) {
		a := spec.Answer(*d)
		maps.Copy(w.Header(), a.Header)
		writeBody(w, r, a.Status, a.Body)
		return
	}
	p := answer.NewProblem(d.Reason.Status(), d.Rule, max(d.RetryAfter, d.Backoff))
	b := answer.NewBuffer()
	p.WriteTo(b)
	if spec != nil {
		spec.headers.add(b, d, spec.quota.Load(), spec.unit)
	}
	b.SetHeaders(w.Header())
	writeBody(w, r, p.Status, b.Body)
	b.Free()
}

// handled answers a refused request by the program's own function. Unlike other answers, this
// one must be made in the request's goroutine, before the request ends.
type handled struct {
	spec  *limitSpec // the limit that decided, or nil
	in    Request
	serve handlerFunc
}

// haveHandled makes the program's own function, if there is one, answer a refused request.
// spec is the limit that decided, or nil.
func (g *Guard) haveHandled(in *Request, spec *limitSpec, d *rules.Decision) {
	o := &g.opts
	f := o.limited
	if d.Reason == rules.ReasonServed {
		if serve := o.serve[d.Rule]; serve != nil {
			f = serve
		} else if spec.limit.Serve != nil {
			return
		}
	}
	if f != nil {
		d.From = &handled{spec: spec, in: *in, serve: f}
	}
}

// respond calls the program's function with w. The decision that it passes has the answer that
// the request would get without the function.
func (h *handled) respond(w http.ResponseWriter, r *http.Request, d rules.Decision) {
	d.From = nil
	if h.spec != nil {
		d.From = h.spec
		h.spec.setHeaders(w.Header(), &d)
	}
	h.serve(w, r, d)
}

// Answer returns the response that the program's function writes.
func (h *handled) Answer(d rules.Decision) rules.Answer {
	r := h.in.http()
	if r == nil {
		r = h.in.imitate()
	}
	w := &recorder{header: make(http.Header)}
	h.respond(w, r, d)
	if w.tooLong {
		d.From = nil
		if h.spec != nil {
			d.From = h.spec
		}
		return d.Answer()
	}
	return w.answer(r)
}

// imitate returns a request of net/http with the fields that in has.
func (in *Request) imitate() *http.Request {
	path, err := url.PathUnescape(in.Path)
	if err != nil {
		path = in.Path
	}
	r := &http.Request{
		Method: in.Method, URL: &url.URL{Path: path, RawPath: in.Path, RawQuery: in.Query}, Pattern: in.Pattern,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: make(http.Header), Body: http.NoBody,
	}
	if in.Context != nil {
		r = r.WithContext(in.Context)
	}
	return r
}

// maxRecorded is the number of bytes of a response that are recorded; see [WithServe].
const maxRecorded = 1 << 20

var errTooLong = errors.New("middleware: the answer is too long to be recorded")

// recorder is an http.ResponseWriter that keeps the response.
type recorder struct {
	header  http.Header
	sent    http.Header // a copy of header from when the status was written; nil until then
	status  int
	body    bytes.Buffer
	tooLong bool
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(status int) {
	if w.sent == nil && status >= 200 { // 1xx responses are not final
		w.status, w.sent = status, w.header.Clone()
	}
}

func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	switch {
	case !hasBody(w.status):
		return 0, http.ErrBodyNotAllowed
	case w.tooLong || w.body.Len()+len(p) > maxRecorded:
		w.tooLong = true
		return 0, errTooLong
	}
	return w.body.Write(p)
}

// answer returns the response to r. If the handler has set no Content-Type, it is detected as
// net/http does.
func (w *recorder) answer(r *http.Request) rules.Answer {
	w.WriteHeader(http.StatusOK)
	a := rules.Answer{Status: w.status, Header: w.sent, Body: w.body.Bytes()}
	if w.sent.Get("Content-Encoding") == "" {
		setType(w.sent, a.Body)
	}
	if r.Method == http.MethodHead {
		setLength(w.sent, w.status, len(a.Body))
		a.Body = nil
	}
	return a
}

// hasBody reports whether a response of this status may have a body.
func hasBody(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

// setType sets the Content-Type of a body as net/http detects it, unless the program has set one.
func setType(h http.Header, body []byte) {
	if _, set := h["Content-Type"]; !set && len(body) > 0 {
		h.Set("Content-Type", http.DetectContentType(body))
	}
}

// setLength sets the Content-Length of a response to HEAD to n, the length that the body of a
// response to GET would have, unless the program has set one.
func setLength(h http.Header, status, n int) {
	if _, set := h["Content-Length"]; !set && n > 0 && hasBody(status) {
		h.Set("Content-Length", strconv.Itoa(n))
	}
}

// writeBody writes an answer whose headers are set.
func writeBody(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	if r.Method == http.MethodHead {
		setLength(w.Header(), status, len(body))
		w.WriteHeader(status)
		return
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have disconnected
}
