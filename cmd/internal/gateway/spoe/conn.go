package spoe

import (
	"bufio"
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/connlimit"
	"github.com/hotparam/hotparam/cmd/internal/gateway"
)

// conn is one connection of HAProxy. One goroutine reads frames. Each NOTIFY has a goroutine of
// its own, because a decision may query Redis, and the next must not wait for it.
type conn struct {
	door      *Door
	net       *connlimit.Conn
	in        *bufio.Reader
	frameSize int           // the size agreed on in the handshake
	slots     chan struct{} // one element for each in-flight NOTIFY
	working   sync.WaitGroup

	writers atomic.Int32 // goroutines that are in write, except the one that has mu
	mu      sync.Mutex   // guards the rest
	out     *bufio.Writer
	failed  error // the first write error
}

func newConn(d *Door, n *connlimit.Conn) *conn {
	return &conn{
		door: d, net: n, in: bufio.NewReaderSize(n, 16<<10), out: bufio.NewWriterSize(n, 16<<10),
		frameSize: d.frameSize, slots: make(chan struct{}, d.inFlight),
	}
}

// serve serves the connection until it ends or draining is closed. Decisions use ctx.
func (c *conn) serve(ctx context.Context, draining <-chan struct{}) {
	err := c.run(ctx, draining)
	c.working.Wait()
	c.finish(err, draining)
}

// run reads frames until the connection ends, and returns the reason. After a health check it
// returns nil.
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
		// The protocol allows unknown frames to be skipped.
	}
}

// errDisconnected means that HAProxy sent a DISCONNECT frame, and waits for one from the door.
var errDisconnected = errors.New("HAProxy disconnects")

// handshake answers HAProxy's first frame. It returns more=false if the connection is a health
// check.
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
	c.net.SetUsed(true)
	if h.healthcheck {
		c.door.healthchecks.Add(1)
	}
	return !h.healthcheck, c.write(appendAgentHello(nil, &h, c.frameSize))
}

// read returns the next frame, in newly allocated memory. The frame must begin within the given
// time, and must then be complete within Door.frameWithin.
func (c *conn) read(draining <-chan struct{}, within time.Duration) (frame, error) {
	if c.in.Buffered() < lengthSize {
		if err := c.net.SetReadDeadline(time.Now().Add(within)); err != nil {
			return frame{}, err
		}
		select { // drain closes the channel before it sets the deadline, so none is missed
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

// notify answers one NOTIFY. After an invalid frame or a panic, the ACK has no variables, and
// HAProxy lets the request pass.
func (c *conn) notify(ctx context.Context, f frame) {
	defer func() {
		<-c.slots
		c.working.Done()
	}()
	room := buffers.Get().(*[]byte)
	defer buffers.Put(room)
	b, err := c.tryAnswer(ctx, (*room)[:0], &f)
	<-c.door.slots // before the write, so that a peer that does not read cannot block others
	if err != nil {
		c.door.Fault(gateway.Invalid, "a NOTIFY is not valid; the request passes", "from", c.net.RemoteAddr())
	}
	*room = b
	_ = c.write(b) // on an error, write closes the connection, which ends the reader
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// tryAnswer is like answer, but returns an ACK without actions after a panic or an error.
func (c *conn) tryAnswer(ctx context.Context, room []byte, f *frame) (b []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			c.door.Fault(gateway.Panicked, "a request could not be decided on; it passes", "panic", v)
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

// write writes b. Of several goroutines that write at once, the last one sends the frames of all. It
// blocks while the peer does not read.
func (c *conn) write(b []byte) error {
	c.writers.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	isLast := c.writers.Add(-1) == 0
	if c.failed != nil {
		return c.failed
	}
	err := c.net.SetWriteDeadline(time.Now().Add(c.door.writeWithin))
	if err == nil {
		_, err = c.out.Write(b)
	}
	if err == nil && isLast {
		err = c.out.Flush()
	}
	if err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.door.Closed(gateway.Slow, "") // an empty text: it is counted, not logged
		}
		c.failed = err
		_ = c.net.Close() // ends the reader
	}
	return err
}

// finish sends the reason for the end of the connection, and closes it.
func (c *conn) finish(err error, draining <-chan struct{}) {
	defer c.net.Close()
	var wrong *protocolError
	s, send := statusNormal, false
	switch {
	case errors.As(err, &wrong):
		s, send = wrong.status, true
		c.door.Closed(reasonOf(s), "a connection ended", "from", c.net.RemoteAddr(), "reason", s.String())
	case errors.Is(err, errDisconnected), isClosed(draining), errors.Is(err, os.ErrDeadlineExceeded):
		send = true // also for an idle connection: HAProxy opens another when it needs one
	}
	if send {
		_ = c.write(appendDisconnect(nil, s, s.String())) // the connection ends in any case
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

// reasonOf returns the name of a status in metrics.
func reasonOf(s status) gateway.Reason {
	switch s {
	case statusTooBig:
		return gateway.TooLarge
	case statusFragmentation:
		return gateway.Fragmented
	case statusTimeout:
		return gateway.Slow
	case statusInvalid:
		return gateway.Invalid
	}
	return gateway.Handshake
}
