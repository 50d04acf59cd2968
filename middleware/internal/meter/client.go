package meter

import (
	"io"
	"net/http"
	"strings"
)

// Client holds what a ticket needs to measure the wait for its client, so that a request allocates
// nothing. Like the contexts of most frameworks it is used again for other requests. The writer must
// not be used after the handler has returned, which net/http does not allow either.
type Client struct {
	Wait
	body   timedBody
	writer Response
	before io.ReadCloser // the request's body
}

// Wrap returns a writer in place of w, and puts a body in place of the request's.
func (x *Client) Wrap(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	if x.before = r.Body; r.Body != nil && r.Body != http.NoBody {
		x.body = timedBody{r.Body, &x.Wait}
		r.Body = &x.body
	}
	_, hijacks := w.(http.Hijacker)
	if _, reads := w.(io.ReaderFrom); hijacks && !reads { // by a framework
		return w
	}
	x.writer = Response{ResponseWriter: w, wait: &x.Wait}
	return x.writer.WithInterfacesOf(w)
}

// Unwrap undoes Wrap. What was waited for remains.
func (x *Client) Unwrap(r *http.Request) {
	r.Body = x.before
	x.body, x.writer, x.before = timedBody{}, Response{}, nil
}

// timedBody is a request's body that measures the wait for it.
type timedBody struct {
	io.ReadCloser
	wait *Wait
}

func (b *timedBody) Read(p []byte) (int, error) {
	b.wait.begin()
	defer b.wait.end()
	return b.ReadCloser.Read(p)
}

// LastsLong reports whether a request lasts for as long as its client wants: an upgrade of its
// connection, or a stream of events.
func LastsLong(r *http.Request) bool {
	return r.Header["Upgrade"] != nil || r.Method == http.MethodConnect ||
		len(r.Header["Accept"]) > 0 && strings.Contains(r.Header["Accept"][0], "text/event-stream")
}
