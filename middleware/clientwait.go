package middleware

import (
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// clientWait measures the time for which a request waits for its client: while its body is read and
// its response is written. That is no use of a back end.
type clientWait struct {
	mu     sync.Mutex // guards the rest; a proxy reads and writes at a time
	waits  int        // reads and writes under way
	since  time.Time  // when the first of them began
	waited time.Duration
}

func (c *clientWait) begin() {
	c.mu.Lock()
	if c.waits++; c.waits == 1 {
		c.since = time.Now()
	}
	c.mu.Unlock()
}

func (c *clientWait) end() {
	c.mu.Lock()
	if c.waits--; c.waits == 0 {
		c.waited += time.Since(c.since)
	}
	c.mu.Unlock()
}

// total returns the time waited so far. That of a nil clientWait is 0.
func (c *clientWait) total() time.Duration {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits > 0 {
		return c.waited + time.Since(c.since)
	}
	return c.waited
}

// takesLong reports whether a request lasts for as long as its client wants: an upgrade of its
// connection, or a stream of events.
func takesLong(r *http.Request) bool {
	return r.Header["Upgrade"] != nil || r.Method == http.MethodConnect ||
		len(r.Header["Accept"]) > 0 && strings.Contains(r.Header["Accept"][0], "text/event-stream")
}

// timedBody is a request's body that measures the wait for it.
type timedBody struct {
	io.ReadCloser
	wait *clientWait
}

func (b *timedBody) Read(p []byte) (int, error) {
	b.wait.begin()
	defer b.wait.end()
	return b.ReadCloser.Read(p)
}

// timedWriter is a ResponseWriter that measures the wait for the client. Like the contexts of most
// frameworks it is used again for other requests. It must not be used after the handler has returned,
// which net/http does not allow either.
type timedWriter struct {
	http.ResponseWriter
	wait *clientWait
}

func (w *timedWriter) Write(p []byte) (int, error) {
	w.wait.begin()
	defer w.wait.end()
	return w.ResponseWriter.Write(p)
}

func (w *timedWriter) WriteString(s string) (int, error) {
	w.wait.begin()
	defer w.wait.end()
	return io.WriteString(w.ResponseWriter, s)
}

// Unwrap returns the server's writer to [http.ResponseController].
func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// timedHTTP2 is a timedWriter of an HTTP/2 request, or another whose writer is an [http.Flusher].
type timedHTTP2 struct{ timedWriter }

func (w *timedHTTP2) Flush() {
	w.wait.begin()
	defer w.wait.end()
	w.ResponseWriter.(http.Flusher).Flush()
}

// timedHTTP1 is a timedWriter of an HTTP/1 request.
type timedHTTP1 struct {
	timedHTTP2
	http.Hijacker
}

// ReadFrom sends a file as the server does. The wait for other sources is the handler's.
func (w *timedHTTP1) ReadFrom(from io.Reader) (int64, error) {
	file := from
	if limited, ok := from.(*io.LimitedReader); ok {
		file = limited.R
	}
	if _, ok := file.(*os.File); !ok {
		return io.Copy(struct{ io.Writer }{&w.timedWriter}, from)
	}
	w.wait.begin()
	defer w.wait.end()
	return w.ResponseWriter.(io.ReaderFrom).ReadFrom(from)
}

// waits holds what a ticket needs to measure the wait for its client, so that a request allocates
// nothing.
type waits struct {
	clientWait
	body   timedBody
	plain  timedWriter
	http2  timedHTTP2
	http1  timedHTTP1
	before io.ReadCloser // the request's body
}

// wrap returns a writer in place of w, and puts a body in place of the request's.
func (x *waits) wrap(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	if x.before = r.Body; r.Body != nil && r.Body != http.NoBody {
		x.body = timedBody{r.Body, &x.clientWait}
		r.Body = &x.body
	}
	_, flushes := w.(http.Flusher)
	hijacker, hijacks := w.(http.Hijacker)
	_, reads := w.(io.ReaderFrom)
	switch timed := (timedWriter{w, &x.clientWait}); {
	case flushes && hijacks && reads:
		x.http1 = timedHTTP1{timedHTTP2{timed}, hijacker}
		return &x.http1
	case hijacks: // by a framework
		return w
	case flushes:
		x.http2 = timedHTTP2{timed}
		return &x.http2
	default:
		x.plain = timed
		return &x.plain
	}
}

// unwrap undoes wrap. What was waited for remains.
func (x *waits) unwrap(r *http.Request) {
	r.Body = x.before
	x.body, x.plain, x.http2, x.http1, x.before = timedBody{}, timedWriter{}, timedHTTP2{}, timedHTTP1{}, nil
}
