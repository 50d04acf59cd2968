package onhot

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// errUnshared ends a handler whose answer no one receives.
var errUnshared = errors.New("onhot: the answer is not for sharing")

// Recorder is the [http.ResponseWriter] of a leader. It keeps the answer in memory, up to the
// policy's Max, and ends the flight as soon as the answer is known not to be for sharing. It
// cannot be hijacked. An adapter of a framework that is not net/http writes an answer to it at
// once, when the handler has returned.
type Recorder struct {
	cache   *Cache
	flight  *flight
	abandon context.CancelFunc

	mu       sync.Mutex // a handler may leave a goroutine behind that writes
	header   http.Header
	answer   *Answer // once the header is written
	reason   Reason  // why the answer is not for sharing
	finished bool
	room     int64 // bytes of the largest body
	reserved int64 // bytes of the cache's memory for recordings
}

// Header returns the header, which counts until WriteHeader.
func (w *Recorder) Header() http.Header { return w.header }

// WriteHeader judges the answer. Informational responses are left out. RFC 8297 leaves Early Hints to
// the server, and only the client of the leader's request would get them in time: it has joined the
// flight like the others, and its goroutine waits for the end.
func (w *Recorder) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeHeader(status)
}

// Flush implements [http.Flusher]. The answer's headers are final then. Its body is complete only
// when the handler returns, so it is not passed on before.
func (w *Recorder) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeHeader(http.StatusOK)
}

func (w *Recorder) writeHeader(status int) {
	if w.answer != nil || w.finished || status >= 100 && status < 200 && status != http.StatusSwitchingProtocols {
		return
	}
	now := time.Now()
	header := canonicalHeader(w.header)
	w.answer = &Answer{status: status, header: header, received: now}
	var reason Reason
	if reason, w.answer.age, w.answer.terms = w.flight.policy.judge(status, header, w.flight.start, now); reason != ReasonNone {
		w.refuse(reason)
		return
	}
	w.room = w.flight.policy.Max - headerBytes(header)
	keepEndToEnd(header)
	if !has(header, "Date") {
		header["Date"] = []string{now.UTC().Format(http.TimeFormat)}
	}
}

// canonicalHeader returns a copy of h in which all names are in their usual form. Handlers may
// write to the map itself.
func canonicalHeader(h http.Header) http.Header {
	c := make(http.Header, len(h)+2)
	for name, values := range h {
		name = http.CanonicalHeaderKey(name)
		c[name] = append(c[name], values...)
	}
	return c
}

// Write records p.
func (w *Recorder) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeHeader(http.StatusOK)
	switch {
	case w.finished:
		return 0, errUnshared
	case w.answer.status == http.StatusNoContent:
		return 0, http.ErrBodyNotAllowed
	case int64(len(w.answer.body)+len(p)) > w.room:
		w.refuse(ReasonOver)
		return 0, errUnshared
	}
	if !w.grow(len(p)) {
		w.refuse(ReasonFull)
		return 0, errUnshared
	}
	if len(w.answer.body) == 0 && len(p) > 0 {
		setType(w.answer.header, p)
	}
	w.answer.body = append(w.answer.body, p...)
	return len(p), nil
}

// setType sets a Content-Type that the handler has not set, from the first bytes that it writes, as
// net/http does.
func setType(h http.Header, p []byte) {
	if _, typed := h["Content-Type"]; !typed && h.Get("Content-Encoding") == "" {
		h["Content-Type"] = []string{http.DetectContentType(p)}
	}
}

// grow makes room for n more bytes of the body. It reserves the memory before it takes it.
func (w *Recorder) grow(n int) bool {
	body := w.answer.body
	need := len(body) + n
	if need <= cap(body) {
		return true
	}
	size := max(need, int(min(2*int64(cap(body)), w.room)), 512)
	if length, err := strconv.Atoi(w.answer.header.Get("Content-Length")); err == nil && length >= need {
		size = length // at most Max, which judge has seen to
	}
	if !w.cache.reserve(int64(size)) {
		return false
	}
	w.answer.body = append(make([]byte, 0, size), body...)
	w.cache.unreserve(w.reserved)
	w.reserved = int64(size)
	return true
}

// Withhold makes the answer not for sharing, even if it is written. Adapters of frameworks call it,
// by middleware.Withhold.
func (w *Recorder) Withhold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.finished {
		w.writeHeader(http.StatusOK)
	}
	if !w.finished {
		w.refuse(ReasonWithheld)
	}
}

// refuse ends the recording and the flight, and cancels the handler's context.
func (w *Recorder) refuse(reason Reason) {
	w.finished, w.reason, w.answer.body = true, reason, nil
	w.cache.unreserve(w.reserved)
	w.reserved = 0
	w.cache.end(w.flight, nil, reason)
	w.abandon()
}

// finish returns the answer of a handler that has returned, or why it is not for sharing.
func (w *Recorder) finish() (*Answer, Reason) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeHeader(http.StatusOK)
	if w.finished {
		return nil, w.reason
	}
	w.finished = true
	a := w.answer
	if hasTrailer(w.header) {
		return nil, ReasonTrailer
	}
	switch declared := a.header["Content-Length"]; {
	case a.status == http.StatusNoContent:
		delete(a.header, "Content-Length")
	case len(declared) > 0 && (len(declared) > 1 || declared[0] != strconv.Itoa(len(a.body))):
		return nil, ReasonTruncated
	default:
		a.header["Content-Length"] = []string{strconv.Itoa(len(a.body))}
	}
	if cap(a.body)-len(a.body) > len(a.body)/4 {
		a.body = bytes.Clone(a.body)
	}
	clipValues(a.header)
	return a, ReasonNone
}

// clipValues prevents that appending to a header of one response writes to another's.
func clipValues(h http.Header) {
	for name, values := range h {
		h[name] = values[:len(values):len(values)]
	}
}

// close refuses all that the handler writes later, and returns the memory reserved for the
// recording. The store accounts for the answer then, if it keeps it.
func (w *Recorder) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finished = true
	w.cache.unreserve(w.reserved)
	w.reserved = 0
}
