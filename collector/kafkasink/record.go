package kafkasink

import (
	"math/bits"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam/internal/wire"
)

// record is a Kafka record with the sums of its counts, for [Stats]. Records are pooled, with
// their buffers.
type record struct {
	msg     *kgo.Record
	value   []byte
	headers []kgo.RecordHeader

	partition int32
	seq       uint64
	start     int64 // start of the counts
	sum       int64 // sum of the counts
	booked    int64 // sum of the counts with an account
	parts     int64 // lines with an account whose counts had been held back
	heldBack  int64 // sum of the groups' held-back counts in value
	lines     int64
	born      time.Time
	tries     int // number of the producer's failed tries
}

// overhead is the approximate memory of a record without its value: the record, its headers,
// and the producer's state for it.
const overhead = 1 << 10

// size returns the part of the buffer that the record uses: the memory that it holds.
func (r *record) size() int64 { return int64(cap(r.value)) + overhead }

// The capacities of values are powers of two, with a pool for each, so that a short value
// never holds a buffer that was made for a long one.
const (
	smallest = 10 // 1 KB
	largest  = 19 // wire.MaxRecord
)

var free [largest - smallest + 1]sync.Pool

// class returns the index of the pool for values of n bytes.
func class(n int) int { return max(0, bits.Len(uint(max(n, 1)-1))-smallest) }

// newRecord returns an empty record with room for n bytes, at most wire.MaxRecord.
func newRecord(n int) *record {
	i := class(n)
	r, _ := free[i].Get().(*record)
	if r == nil {
		r = &record{value: make([]byte, 0, 1<<(smallest+i))}
	}
	return r
}

// grown returns the record with room for n bytes in total. If the result is another record, r
// has been freed.
func (r *record) grown(n int) *record {
	if n <= cap(r.value) {
		return r
	}
	larger := newRecord(n)
	larger.start, larger.sum, larger.lines = r.start, r.sum, r.lines
	larger.booked, larger.parts, larger.heldBack = r.booked, r.parts, r.heldBack
	larger.value = append(larger.value, r.value...)
	r.free()
	return larger
}

// free returns the record to its pool. The producer must not have it: it sends a copy of the
// value, and does not use a message after reporting it.
func (r *record) free() {
	i := class(cap(r.value))
	*r = record{msg: r.msg, value: r.value[:0], headers: r.headers[:0]}
	free[i].Put(r)
}

// seal prepares the record for the producer.
func (r *record) seal(topic string, seq uint64, headers []wire.Header) {
	r.seq = seq
	for i := range headers {
		r.headers = append(r.headers, kgo.RecordHeader(headers[i]))
	}
	if r.msg == nil {
		r.msg = new(kgo.Record)
	}
	r.address(topic)
}

// address makes the record's message. The producer stamps it with the time when it receives
// the message.
func (r *record) address(topic string) {
	*r.msg = kgo.Record{Topic: topic, Partition: r.partition, Value: r.value, Headers: r.headers}
}

// twin returns a copy that shares nothing with the record and has the same size. The record
// itself is left to a producer that does not return it.
func (r *record) twin() *record {
	t := newRecord(cap(r.value))
	value, headers := t.value[:0], t.headers[:0]
	value = append(value, r.value...)
	headers = append(headers, r.headers...)
	*t = *r
	t.value, t.headers = value, headers
	t.msg = new(kgo.Record)
	t.address(r.msg.Topic)
	return t
}
