package spoe

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// conn is one connection of HAProxy. One goroutine reads frames, and each NOTIFY has one of its
// own, since a decision may ask Redis and the next must not wait for it.
type conn struct {
	door      *Door
	net       net.Conn
	settle    func() // says that HAProxy has shaken hands
	in        *bufio.Reader
	frameSize int           // agreed on
	slots     chan struct{} // one for each NOTIFY that is worked on
	working   sync.WaitGroup

	mu      sync.Mutex
	written sync.Cond // pending has been taken, or the connection is broken
	pending []byte    // acknowledgements to write
	spare   []byte    // room for pending, while its own is written
	writing bool
	failed  error
}

func newConn(d *Door, n net.Conn, settle func()) *conn {
	c := &conn{door: d, net: n, settle: settle, in: bufio.NewReaderSize(n, 16<<10), frameSize: d.frameSize, slots: make(chan struct{}, d.inFlight)}
	c.written.L = &c.mu
	return c
}

// serve serves the connection until it ends, or draining is closed. ctx is that of decisions.
func (c *conn) serve(ctx context.Context, draining <-chan struct{}) {
	err := c.run(ctx, draining)
	c.working.Wait()
	c.finish(err, draining)
}

// run returns why the connection ends: nil if there is nothing to say to the other side.
func (c *conn) run(ctx context.Context, draining <-chan struct{}) error {
	more, err := c.handshake(draining)
	if err != nil || !more {
		return err
	}
	for {
		f, err := c.read(draining, c.door.idle)
		if err != nil {
			return err
		}
		switch f.kind {
		case typeNotify:
			c.slots <- struct{}{}
			c.door.slots <- struct{}{}
			c.working.Add(1)
			go c.notify(ctx, f)
		case typeHAProxyDisconnect:
			return errDisconnected
		case typeHAProxyHello:
			return broken(statusInvalid)
		}
		// Unknown frames may be skipped.
	}
}

// errDisconnected is that HAProxy wants to close the connection, and waits for the same from
// the door.
var errDisconnected = errors.New("HAProxy disconnects")

// handshake answers HAProxy's first frame. more is false if the connection only asked whether
// the door is there.
func (c *conn) handshake(draining <-chan struct{}) (more bool, err error) {
	f, err := c.read(draining, c.door.helloWithin)
	if errors.Is(err, os.ErrDeadlineExceeded) && !isClosed(draining) {
		return false, broken(statusTimeout)
	}
	if err != nil {
		return false, err
	}
	if f.kind != typeHAProxyHello {
		return false, broken(statusInvalid)
	}
	h, err := parseHello(f.payload)
	if err != nil {
		return false, err
	}
	c.frameSize = int(min(uint64(c.frameSize), h.frameSize))
	c.settle()
	if h.healthcheck {
		c.door.counters.Healthchecks.Add(1)
	}
	return !h.healthcheck, c.write(appendAgentHello(nil, &h, c.frameSize))
}

// read returns the next frame, in memory of its own. The frame may begin within the time given,
// and must then come without pauses.
func (c *conn) read(draining <-chan struct{}, within time.Duration) (frame, error) {
	if c.in.Buffered() < lengthSize {
		if err := c.net.SetReadDeadline(time.Now().Add(within)); err != nil {
			return frame{}, err
		}
		select { // drain sets the deadline after it has closed the channel
		case <-draining:
			return frame{}, os.ErrDeadlineExceeded
		default:
		}
		if _, err := c.in.Peek(1); err != nil {
			return frame{}, err
		}
	}
	if err := c.net.SetReadDeadline(time.Now().Add(c.door.frameWithin)); err != nil {
		return frame{}, err
	}
	b, err := readFrame(c.in, nil, c.frameSize)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return frame{}, broken(statusTimeout)
	}
	if err != nil {
		return frame{}, err
	}
	return parseFrame(b)
}

// notify answers one NOTIFY. A frame that is not valid, or a panic, has an ACK without
// variables: HAProxy lets the request pass.
func (c *conn) notify(ctx context.Context, f frame) {
	defer func() {
		<-c.slots
		c.working.Done()
	}()
	room := buffers.Get().(*[]byte)
	defer buffers.Put(room)
	b, err := c.tryAnswer(ctx, (*room)[:0], &f)
	<-c.door.slots // before it writes: peers that do not read take no places of others
	if err != nil {
		c.door.counters.Invalid.Add(1)
		c.door.warn(&c.door.logs.broken, "a NOTIFY is not valid; the request passes", "from", c.net.RemoteAddr())
	}
	*room = b
	_ = c.write(b) // the reader learns it as well
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// tryAnswer is answer; of a panic, and of an error, it is an ACK without actions.
func (c *conn) tryAnswer(ctx context.Context, room []byte, f *frame) (b []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			c.door.counters.Panics.Add(1)
			c.door.warn(&c.door.logs.panicked, "a request could not be decided on; it passes", "panic", v)
			b, err = appendEmptyAck(room, f), nil
		}
	}()
	if b, err = c.door.answer(ctx, room, f, c.frameSize); err != nil {
		return appendEmptyAck(room, f), err
	}
	return b, nil
}

func appendEmptyAck(b []byte, f *frame) []byte {
	b = appendHead(b[:0], typeAck, f.stream, f.id)
	putLength(b)
	return b
}

// write writes b, which it copies, together with what others write meanwhile: who finds
// nobody writing writes for all. It waits if the other side does not read.
func (c *conn) write(b []byte) error {
	const most = 256 << 10 // bytes pending
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.pending) > most && c.failed == nil {
		c.written.Wait()
	}
	if c.failed != nil {
		return c.failed
	}
	c.pending = append(c.pending, b...)
	if c.writing {
		return nil
	}
	c.writing = true
	for len(c.pending) > 0 && c.failed == nil {
		out := c.pending
		c.pending = c.spare[:0]
		c.written.Broadcast()
		c.mu.Unlock()
		err := c.net.SetWriteDeadline(time.Now().Add(c.door.writeWithin))
		if err == nil {
			_, err = c.net.Write(out)
		}
		c.mu.Lock()
		c.spare = out[:0]
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				c.door.counters.Slow.Add(1)
			}
			c.failed = err
			c.written.Broadcast()
			_ = c.net.Close() // ends the reader
		}
	}
	c.writing = false
	return c.failed
}

// finish says why the connection ends, and closes it.
func (c *conn) finish(err error, draining <-chan struct{}) {
	defer c.net.Close()
	var wrong *protocolError
	s, say := statusNormal, false
	switch {
	case errors.As(err, &wrong):
		s, say = wrong.status, true
		c.door.countBroken(s)
		c.door.warn(&c.door.logs.broken, "a connection ended", "from", c.net.RemoteAddr(), "reason", s.String())
	case errors.Is(err, errDisconnected), isClosed(draining), errors.Is(err, os.ErrDeadlineExceeded):
		say = true // an idle one too: HAProxy opens another when it needs one
	}
	if say {
		_ = c.write(appendDisconnect(nil, s, s.String())) // the connection is about to end
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (d *Door) countBroken(s status) {
	c := &d.counters
	switch s {
	case statusTooBig:
		c.TooBig.Add(1)
	case statusFragmentation:
		c.Fragmented.Add(1)
	case statusTimeout:
		c.Slow.Add(1)
	case statusInvalid:
		c.Invalid.Add(1)
	default:
		c.Handshakes.Add(1)
	}
}
