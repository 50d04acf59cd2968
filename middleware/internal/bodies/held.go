package bodies

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"sync/atomic"
)

// Held is a request's body whose beginning the guard has read. It reads like the original:
// the same bytes, then the same error at the same place, or the rest of the body.
type Held struct {
	unread io.ReadCloser // the body, from the end of the read part
	ahead  []byte        // the read part that is still to be read again
	err    error         // the error that ended reading, or nil
	closed atomic.Bool
	room   *room
	stop   func() bool // keeps the context's end from releasing the room; may be nil
}

// room is the share of a Held in the bytes that a guard may hold at a time.
type room struct {
	total *atomic.Int64
	size  atomic.Int64
}

// reserve adds n bytes to the room if the total stays within limit, and reports whether it did.
func (m *room) reserve(n, limit int64) bool {
	if m.total.Add(n) > limit {
		m.total.Add(-n)
		return false
	}
	m.size.Add(n)
	return true
}

func (m *room) release() { m.total.Add(-m.size.Swap(0)) }

// Hold reads the request's body, up to the limits, and replaces it by a Held. It
// returns the bytes that it has read, which are the whole body if reason is OK. The room is
// released once the bytes were read again, the body is closed, or the request's context ends.
// Hold waits as long as the server, which has its own deadlines. But it stops between
// two reads if the context has ended.
func (c *Counts) Hold(ctx context.Context, in *http.Request, max, total int64) (text []byte, reason Reason) {
	if ctx.Err() != nil {
		return nil, Failed
	}
	held := &Held{unread: in.Body, room: &room{total: &c.Held}}
	in.Body = held // before the first read, so that a panic loses nothing
	defer held.watch(ctx)
	size := int64(1 << 10)
	if in.ContentLength >= 0 {
		size = min(in.ContentLength, 8<<10) + 1 // one more byte, to see the end
	}
	const patience = 100 // reads without a byte, as in bufio
	for idle := 0; idle < patience; {
		if free := cap(held.ahead) - len(held.ahead); free == 0 {
			size = min(size, max+1)
			if !held.room.reserve(size-int64(cap(held.ahead)), total) {
				if held.ahead == nil { // the server must see by its type that no one has asked the client to continue
					in.Body = held.unread
				}
				return nil, NoRoom
			}
			held.ahead = append(make([]byte, 0, size), held.ahead...)
			if size *= 4; int64(cap(held.ahead)) <= in.ContentLength {
				size = min(size, in.ContentLength+1)
			}
		}
		n, err := held.unread.Read(held.ahead[len(held.ahead):cap(held.ahead)])
		held.ahead = held.ahead[:len(held.ahead)+n]
		held.err = err
		switch {
		case int64(len(held.ahead)) > max:
			return nil, TooLarge
		case err == io.EOF:
			return held.ahead, OK
		case err != nil && errors.As(err, new(*http.MaxBytesError)):
			return nil, TooLarge
		case err != nil || ctx.Err() != nil:
			return nil, Failed
		}
		if idle++; n > 0 {
			idle = 0
		}
	}
	return nil, Failed
}

// watch releases the room at the end of the request. If the context never ends, the room is
// released when the garbage collector frees h.
func (h *Held) watch(ctx context.Context) {
	if len(h.ahead) == 0 { // nothing to read again
		h.room.release()
	} else if ctx.Done() != nil {
		h.stop = context.AfterFunc(ctx, h.room.release)
	} else {
		runtime.AddCleanup(h, (*room).release, h.room)
	}
}

// Release releases the room. It may be called more than once.
func (h *Held) Release() {
	if h.stop != nil {
		h.stop()
	}
	h.room.release()
}

func (h *Held) Read(p []byte) (int, error) {
	switch {
	case h.closed.Load(): // unread returns the error
	case len(h.ahead) > 0:
		n := copy(p, h.ahead)
		if h.ahead = h.ahead[n:]; len(h.ahead) == 0 {
			h.ahead = nil
			h.Release()
		}
		return n, nil
	case h.err != nil:
		err := h.err
		h.err = nil // later reads return the result of unread
		return 0, err
	}
	return h.unread.Read(p)
}

// Close may be called while Read is blocked, as the server's own bodies allow.
func (h *Held) Close() error {
	h.closed.Store(true)
	h.Release()
	return h.unread.Close()
}
