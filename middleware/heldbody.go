package middleware

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"sync/atomic"
)

// heldBody is a request's body whose beginning the guard has read. It reads as the body did:
// the same bytes, then the same error at the same place or the rest of the body.
type heldBody struct {
	rest   io.ReadCloser // the body, behind what was read of it
	ahead  []byte        // what was read and is to be read again
	err    error         // what reading ended with, or nil
	closed atomic.Bool
	room   *room
	stop   func() bool // nil, or has the end of the context no longer release the room
}

// room is what a heldBody takes of the bytes that a guard holds at a time.
type room struct {
	total *atomic.Int64
	size  atomic.Int64
}

// reserve adds n bytes to the room, and reports whether the total stays within limit.
func (m *room) reserve(n, limit int64) bool {
	if m.total.Add(n) > limit {
		m.total.Add(-n)
		return false
	}
	m.size.Add(n)
	return true
}

func (m *room) release() { m.total.Add(-m.size.Swap(0)) }

// hold reads the request's body, up to the limits, and puts a heldBody in its place. It
// returns what it has read, which is the whole body if reason is isRead. The room is given
// back once that was read again, the body is closed, or the request's context ends. The read
// is as patient as the server, which has deadlines of its own, but ends between two reads if
// the context does.
func (b *bodies) hold(ctx context.Context, in *http.Request, max, total int64) (text []byte, reason unreadReason) {
	if ctx.Err() != nil {
		return nil, readFailed
	}
	held := &heldBody{rest: in.Body, room: &room{total: &b.held}}
	in.Body = held // before the first read, so that a panic loses nothing
	defer held.watch(ctx)
	size := int64(1 << 10)
	if in.ContentLength >= 0 {
		size = min(in.ContentLength, 8<<10) + 1 // one more, to see the end
	}
	const patience = 100 // reads without a byte, as in bufio
	for idle := 0; idle < patience; {
		if free := cap(held.ahead) - len(held.ahead); free == 0 {
			size = min(size, max+1)
			if !held.room.reserve(size-int64(cap(held.ahead)), total) {
				if held.ahead == nil { // the server must see by its type that nobody has asked the client to continue
					in.Body = held.rest
				}
				return nil, noRoom
			}
			held.ahead = append(make([]byte, 0, size), held.ahead...)
			if size *= 4; int64(cap(held.ahead)) <= in.ContentLength {
				size = min(size, in.ContentLength+1)
			}
		}
		n, err := held.rest.Read(held.ahead[len(held.ahead):cap(held.ahead)])
		held.ahead = held.ahead[:len(held.ahead)+n]
		held.err = err
		switch {
		case int64(len(held.ahead)) > max:
			return nil, tooLarge
		case err == io.EOF:
			return held.ahead, isRead
		case err != nil && errors.As(err, new(*http.MaxBytesError)):
			return nil, tooLarge
		case err != nil || ctx.Err() != nil:
			return nil, readFailed
		}
		if idle++; n > 0 {
			idle = 0
		}
	}
	return nil, readFailed
}

// watch has the room given back at the end of the request. If the context never ends, the
// garbage collector tells.
func (h *heldBody) watch(ctx context.Context) {
	if len(h.ahead) == 0 { // there is nothing to read again
		h.room.release()
	} else if ctx.Done() != nil {
		h.stop = context.AfterFunc(ctx, h.room.release)
	} else {
		runtime.AddCleanup(h, (*room).release, h.room)
	}
}

// release gives the room back. It may be called more than once.
func (h *heldBody) release() {
	if h.stop != nil {
		h.stop()
	}
	h.room.release()
}

func (h *heldBody) Read(p []byte) (int, error) {
	switch {
	case h.closed.Load(): // the rest says so
	case len(h.ahead) > 0:
		n := copy(p, h.ahead)
		if h.ahead = h.ahead[n:]; len(h.ahead) == 0 {
			h.ahead = nil
			h.release()
		}
		return n, nil
	case h.err != nil:
		err := h.err
		h.err = nil // from then on the rest says what comes
		return 0, err
	}
	return h.rest.Read(p)
}

// Close may be called while Read is blocked, as the server's own bodies allow.
func (h *heldBody) Close() error {
	h.closed.Store(true)
	h.release()
	return h.rest.Close()
}
