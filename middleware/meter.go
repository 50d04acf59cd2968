package middleware

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/hotparam/hotparam/rules"
)

// serve serves the ticket's request, measures the costs that its rules count, and ends the
// ticket, even if the handler panics.
func (t *Ticket) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if t.metered = t.metered && !takesLong(r); t.metered {
		if t.client == nil {
			t.client = new(waits)
		}
		w = t.client.wrap(w, r)
	}
	request := r
	if ctx := t.Context(r.Context()); t.cancel != nil {
		r = r.WithContext(ctx)
	}
	t.Start()
	var body *responseMeter
	var said *spent
	defer func() {
		var cost Cost
		if body != nil {
			cost.Bytes = body.n
		}
		if said != nil {
			cost.Units = said.units.Load()
		}
		if t.metered {
			t.client.unwrap(request)
		}
		t.End(cost)
	}()
	if t.Counts(rules.Units) {
		ctx, sum := withSpent(r.Context())
		r, said = r.WithContext(ctx), sum
	}
	if t.Counts(rules.Bytes) && r.Method != http.MethodHead { // responses to HEAD have no body
		body = &responseMeter{ResponseWriter: w}
		w = body.withInterfacesOf(w)
	}
	next.ServeHTTP(w, r)
}

// responseMeter counts the bytes of a response's body, and keeps its status. It also measures the
// wait for the client, if it has a clientWait.
type responseMeter struct {
	http.ResponseWriter
	n      int64
	status int // 0 if the handler has written none
	wait   *clientWait
}

func (m *responseMeter) WriteHeader(status int) {
	if m.status == 0 && status >= 200 { // 1xx responses are not final
		m.status = status
	}
	m.ResponseWriter.WriteHeader(status)
}

func (m *responseMeter) Write(p []byte) (int, error) {
	m.wait.begin()
	defer m.wait.end()
	n, err := m.ResponseWriter.Write(p)
	m.n += int64(n)
	return n, err
}

func (m *responseMeter) WriteString(s string) (int, error) {
	m.wait.begin()
	defer m.wait.end()
	n, err := io.WriteString(m.ResponseWriter, s)
	m.n += int64(n)
	return n, err
}

// Unwrap returns the server's writer to [http.ResponseController].
func (m *responseMeter) Unwrap() http.ResponseWriter { return m.ResponseWriter }

func (m *responseMeter) flush() {
	m.wait.begin()
	defer m.wait.end()
	m.ResponseWriter.(http.Flusher).Flush()
}

func (m *responseMeter) hijack() (net.Conn, *bufio.ReadWriter, error) {
	return m.ResponseWriter.(http.Hijacker).Hijack()
}

// readFrom sends a file as the server does. The wait for other sources is the handler's.
func (m *responseMeter) readFrom(from io.Reader) (int64, error) {
	file := from
	if limited, ok := from.(*io.LimitedReader); ok {
		file = limited.R
	}
	if _, ok := file.(*os.File); !ok && m.wait != nil {
		return io.Copy(struct{ io.Writer }{m}, from)
	}
	m.wait.begin()
	defer m.wait.end()
	n, err := m.ResponseWriter.(io.ReaderFrom).ReadFrom(from)
	m.n += n
	return n, err
}

// Meters with the optional interfaces of their writers: F is http.Flusher, H is http.Hijacker, and R is
// io.ReaderFrom, for example to use sendfile. Each is one pointer, so that it needs no memory.
type (
	meterF   struct{ *responseMeter }
	meterH   struct{ *responseMeter }
	meterR   struct{ *responseMeter }
	meterFH  struct{ meterF }
	meterFR  struct{ meterF }
	meterHR  struct{ meterH }
	meterFHR struct{ meterFH }
)

func (m meterF) Flush()                                         { m.flush() }
func (m meterH) Hijack() (net.Conn, *bufio.ReadWriter, error)   { return m.hijack() }
func (m meterFH) Hijack() (net.Conn, *bufio.ReadWriter, error)  { return m.hijack() }
func (m meterR) ReadFrom(from io.Reader) (n int64, err error)   { return m.readFrom(from) }
func (m meterFR) ReadFrom(from io.Reader) (n int64, err error)  { return m.readFrom(from) }
func (m meterHR) ReadFrom(from io.Reader) (n int64, err error)  { return m.readFrom(from) }
func (m meterFHR) ReadFrom(from io.Reader) (n int64, err error) { return m.readFrom(from) }

// withInterfacesOf returns the meter with the optional interfaces that w has, for handlers that
// use them by type assertion instead of through an http.ResponseController.
func (m *responseMeter) withInterfacesOf(w http.ResponseWriter) http.ResponseWriter {
	_, flushes := w.(http.Flusher)
	_, hijacks := w.(http.Hijacker)
	_, reads := w.(io.ReaderFrom)
	switch {
	case flushes && hijacks && reads: // HTTP/1
		return meterFHR{meterFH{meterF{m}}}
	case flushes && hijacks:
		return meterFH{meterF{m}}
	case flushes && reads:
		return meterFR{meterF{m}}
	case flushes: // HTTP/2
		return meterF{m}
	case hijacks && reads:
		return meterHR{meterH{m}}
	case hijacks:
		return meterH{m}
	case reads:
		return meterR{m}
	}
	return m
}
