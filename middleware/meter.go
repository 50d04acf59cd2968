package middleware

import (
	"io"
	"net/http"

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

// responseMeter counts the bytes of a response's body, and keeps its status.
type responseMeter struct {
	http.ResponseWriter
	n      int64
	status int // 0 if the handler has written none
}

func (m *responseMeter) WriteHeader(status int) {
	if m.status == 0 && status >= 200 { // 1xx responses are not final
		m.status = status
	}
	m.ResponseWriter.WriteHeader(status)
}

func (m *responseMeter) Write(p []byte) (int, error) {
	n, err := m.ResponseWriter.Write(p)
	m.n += int64(n)
	return n, err
}

func (m *responseMeter) WriteString(s string) (int, error) {
	n, err := io.WriteString(m.ResponseWriter, s)
	m.n += int64(n)
	return n, err
}

// Unwrap returns the server's writer to [http.ResponseController].
func (m *responseMeter) Unwrap() http.ResponseWriter { return m.ResponseWriter }

// meterFrom is a meter whose writer is an io.ReaderFrom, for example to use sendfile.
type meterFrom struct {
	*responseMeter
	from io.ReaderFrom
}

func (m meterFrom) ReadFrom(src io.Reader) (int64, error) {
	n, err := m.from.ReadFrom(src)
	m.n += n
	return n, err
}

// withInterfacesOf returns the meter with the optional interfaces that w has, for handlers that
// use them by type assertion instead of through an http.ResponseController.
func (m *responseMeter) withInterfacesOf(w http.ResponseWriter) http.ResponseWriter {
	flusher, flushes := w.(http.Flusher)
	hijacker, hijacks := w.(http.Hijacker)
	from, reads := w.(io.ReaderFrom)
	switch {
	case flushes && hijacks && reads: // HTTP/1
		return struct {
			meterFrom
			http.Flusher
			http.Hijacker
		}{meterFrom{m, from}, flusher, hijacker}
	case flushes && hijacks:
		return struct {
			*responseMeter
			http.Flusher
			http.Hijacker
		}{m, flusher, hijacker}
	case flushes && reads:
		return struct {
			meterFrom
			http.Flusher
		}{meterFrom{m, from}, flusher}
	case flushes: // HTTP/2
		return struct {
			*responseMeter
			http.Flusher
		}{m, flusher}
	case hijacks && reads:
		return struct {
			meterFrom
			http.Hijacker
		}{meterFrom{m, from}, hijacker}
	case hijacks:
		return struct {
			*responseMeter
			http.Hijacker
		}{m, hijacker}
	case reads:
		return meterFrom{m, from}
	}
	return m
}
