package kafkasink

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// throttleCap bounds the throttle times that the client obeys. Sarama sleeps for what
// an answer names, up to 24 days, under the broker's lock, so that neither a deadline
// nor Close ends it; a damaged answer would silence the sink for good. A cap costs
// nothing: a broker enforces a quota by not reading from the client that exceeds it.
const throttleCap = time.Second

// maxAnswer bounds an answer. The largest is about the topic: some 50 bytes for each
// partition and broker.
const maxAnswer = 16 << 20

// Requests whose answers carry a throttle time that sarama obeys.
const (
	metadataKey   = 3
	producerIDKey = 22
)

// answers is a connection to a broker, on which the throttle times in what the broker
// answers are at most limit. It holds each answer until it has the whole of it. One
// goroutine reads, another writes.
type answers struct {
	net.Conn
	limit time.Duration

	mu   sync.Mutex
	asks map[uint32]request // that have no answer yet, by their number

	answer []byte // what is left of it for Read
	buffer []byte
	filled int // bytes of buffer
}

// request is what an answer's form depends on.
type request struct{ key, version int16 }

// maxAsks bounds how many requests are remembered: sarama has one on its way.
const maxAsks = 16

// Write passes a request on, of which sarama writes each at once.
func (a *answers) Write(p []byte) (int, error) {
	const head = 12 // length, key, version, number
	if len(p) >= head && int(binary.BigEndian.Uint32(p)) == len(p)-4 {
		a.mu.Lock()
		if len(a.asks) < maxAsks {
			a.asks[binary.BigEndian.Uint32(p[8:])] = request{int16(binary.BigEndian.Uint16(p[4:])), int16(binary.BigEndian.Uint16(p[6:]))}
		}
		a.mu.Unlock()
	}
	return a.Conn.Write(p)
}

// Read returns bytes of the next answer. After a deadline it goes on where it was.
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

func (a *answers) capThrottle(answer []byte) {
	number := binary.BigEndian.Uint32(answer[4:])
	a.mu.Lock()
	asked, ok := a.asks[number]
	delete(a.asks, number)
	a.mu.Unlock()
	if !ok {
		return
	}
	const head = 8 // length, number
	at := 0
	switch {
	case asked.key == produceKey: // up to newest's version it is the last field
		at = max(head, len(answer)-4)
	case asked.key == metadataKey && asked.version >= 9, asked.key == producerIDKey && asked.version >= 2:
		at = head + 1 // the head has tags: none, or sarama does not read it
	case asked.key == metadataKey && asked.version >= 3, asked.key == producerIDKey:
		at = head
	default:
		return
	}
	if len(answer) < at+4 {
		return
	}
	field := answer[at : at+4]
	if ms := int32(binary.BigEndian.Uint32(field)); ms < 0 || time.Duration(ms)*time.Millisecond > a.limit {
		// A negative time is over at once; as 0 it cannot disturb sarama's timer.
		binary.BigEndian.PutUint32(field, uint32(max(0, min(time.Duration(ms), a.limit/time.Millisecond))))
	}
}
