package middleware

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// clientWait measures the time for which a request waits for its client: while its body is read and
// its response is written. That is no use of a back end.
// A nil clientWait measures nothing.
type clientWait struct {
	mu     sync.Mutex // guards the rest; a proxy reads and writes at a time
	waits  int        // reads and writes under way
	since  time.Time  // when the first of them began
	waited time.Duration
}

func (c *clientWait) begin() {
	if c == nil {
		return
	}
	c.mu.Lock()
	if c.waits++; c.waits == 1 {
		c.since = time.Now()
	}
	c.mu.Unlock()
}

func (c *clientWait) end() {
	if c == nil {
		return
	}
	c.mu.Lock()
	if c.waits--; c.waits == 0 {
		c.waited += time.Since(c.since)
	}
	c.mu.Unlock()
}

// total returns the time waited so far.
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

// waits holds what a ticket needs to measure the wait for its client, so that a request allocates
// nothing. Like the contexts of most frameworks it is used again for other requests. The writer must
// not be used after the handler has returned, which net/http does not allow either.
type waits struct {
	clientWait
	body   timedBody
	writer responseMeter
	before io.ReadCloser // the request's body
}

// wrap returns a writer in place of w, and puts a body in place of the request's.
func (x *waits) wrap(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	if x.before = r.Body; r.Body != nil && r.Body != http.NoBody {
		x.body = timedBody{r.Body, &x.clientWait}
		r.Body = &x.body
	}
	_, hijacks := w.(http.Hijacker)
	if _, reads := w.(io.ReaderFrom); hijacks && !reads { // by a framework
		return w
	}
	x.writer = responseMeter{ResponseWriter: w, wait: &x.clientWait}
	return x.writer.withInterfacesOf(w)
}

// unwrap undoes wrap. What was waited for remains.
func (x *waits) unwrap(r *http.Request) {
	r.Body = x.before
	x.body, x.writer, x.before = timedBody{}, responseMeter{}, nil
}
