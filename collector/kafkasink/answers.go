package kafkasink

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// throttleCap bounds the throttle times that the client obeys. The client sends nothing on a
// connection for the time in an answer, up to 24 days: a damaged answer would stop the sink
// until its session is replaced. The cap has no cost, since a broker enforces a quota by not
// reading from a client that exceeds it.
const throttleCap = time.Second

// maxAnswer bounds the size of an answer. The largest answer is the topic's metadata, with some
// 50 bytes for each partition and broker.
const maxAnswer = 16 << 20

// Requests whose answers carry a throttle time that the client obeys.
const (
	produceKey    = 0
	metadataKey   = 3
	producerIDKey = 22
)

// answers is a connection to a broker that caps the throttle times in the broker's answers at
// limit. Read returns an answer only once it has arrived completely. One goroutine may read
// while another writes.
type answers struct {
	net.Conn
	limit time.Duration

	mu   sync.Mutex
	asks map[uint32]requestVersion // unanswered requests, by correlation id

	answer []byte // the unread part of the last answer
	buffer []byte
	filled int // number of bytes in buffer
}

// requestVersion is the part of a request that determines the format of its answer.
type requestVersion struct{ key, version int16 }

// maxAsks bounds the number of requests that are remembered. The client has a few in flight.
const maxAsks = 16

// Write implements [net.Conn]. The client writes each request by one call.
func (a *answers) Write(p []byte) (int, error) {
	const head = 12 // length, key, version, correlation id
	if len(p) >= head && int(binary.BigEndian.Uint32(p)) == len(p)-4 {
		a.mu.Lock()
		if len(a.asks) < maxAsks {
			a.asks[binary.BigEndian.Uint32(p[8:])] = requestVersion{int16(binary.BigEndian.Uint16(p[4:])), int16(binary.BigEndian.Uint16(p[6:]))}
		}
		a.mu.Unlock()
	}
	return a.Conn.Write(p)
}

// Read implements [net.Conn]. After a deadline, it continues where it stopped.
func (a *answers) Read(p []byte) (int, error) {
	if len(a.answer) == 0 {
		if err := a.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, a.answer)
	a.answer = a.answer[n:]
	return n, nil
}

// next reads one answer.
func (a *answers) next() error {
	if err := a.fill(4); err != nil {
		return err
	}
	length := int64(binary.BigEndian.Uint32(a.buffer))
	if length < 4 || length > maxAnswer {
		return fmt.Errorf("kafka: an answer of %d bytes; want 4 to %d: is it Kafka?", length, maxAnswer)
	}
	if err := a.fill(4 + int(length)); err != nil {
		return err
	}
	a.answer, a.filled = a.buffer[:4+length], 0
	a.capThrottle(a.answer)
	return nil
}

// fill reads until the buffer has n bytes.
func (a *answers) fill(n int) error {
	if n > len(a.buffer) {
		a.buffer = append(a.buffer, make([]byte, n-len(a.buffer))...)
	}
	if a.filled >= n {
		return nil
	}
	read, err := io.ReadFull(a.Conn, a.buffer[a.filled:n])
	a.filled += read
	return err
}

// capThrottle caps the throttle time of an answer, if it has one.
func (a *answers) capThrottle(answer []byte) {
	id := binary.BigEndian.Uint32(answer[4:])
	a.mu.Lock()
	asked, ok := a.asks[id]
	delete(a.asks, id)
	a.mu.Unlock()
	if !ok {
		return
	}
	const head = 8 // length, correlation id
	pos := 0
	switch {
	case asked.key == produceKey: // the last field, up to the version of newest
		pos = max(head, len(answer)-4)
	case asked.key == metadataKey && asked.version >= 9, asked.key == producerIDKey && asked.version >= 2:
		pos = head + 1 // after the head's tags, which are empty in the versions in use
	case asked.key == metadataKey && asked.version >= 3, asked.key == producerIDKey:
		pos = head
	default:
		return
	}
	if len(answer) < pos+4 {
		return
	}
	field := answer[pos : pos+4]
	if ms := int32(binary.BigEndian.Uint32(field)); ms < 0 || time.Duration(ms)*time.Millisecond > a.limit {
		// A negative time becomes 0.
		binary.BigEndian.PutUint32(field, uint32(max(0, min(time.Duration(ms), a.limit/time.Millisecond))))
	}
}
