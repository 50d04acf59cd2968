package kafkasink

import (
	"math/bits"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/hotparam/hotparam/wire"
)

// record is one record on its way: what the producer gets, and what is to be told
// when it comes back. Records are used again, with their buffers.
type record struct {
	msg     *sarama.ProducerMessage
	value   []byte
	headers []sarama.RecordHeader

	partition int32
	seq       uint64
	start     int64 // of its counts
	mass      int64 // sum of its counts
	booked    int64 // of these, those with an account
	parts     int64 // lines with one that tell what was held back
	heldBack  int64 // of groups, in the value
	lines     int64
	born      time.Time
	tries     int // that failed in the producer
	next      *record
}

// Encode and Length make the record its own value.
func (r *record) Encode() ([]byte, error) { return r.value, nil }

// Length is that of the value.
func (r *record) Length() int { return len(r.value) }

// overhead is about what a record takes besides its value: itself, its headers,
// and what the producer keeps of it.
const overhead = 1 << 10

// size is what a record takes of the buffer: the memory that it holds.
func (r *record) size() int64 { return int64(cap(r.value)) + overhead }

// Values come in sizes of powers of two, so that one that was large once does not
// carry a short one forever: a value holds at most twice what is in it, and
// smallest.
const (
	smallest = 10 // 1 KB
	largest  = 19 // wire.MaxRecord
)

var free [largest - smallest + 1]sync.Pool

// class is the pool of values of n bytes.
func class(n int) int { return max(0, bits.Len(uint(max(n, 1)-1))-smallest) }

// newRecord is an empty record with room for n bytes, at most wire.MaxRecord.
func newRecord(n int) *record {
	i := class(n)
	r, _ := free[i].Get().(*record)
	if r == nil {
		r = &record{value: make([]byte, 0, 1<<(smallest+i))}
	}
	return r
}

// grown is the record with room for n bytes in all.
func (r *record) grown(n int) *record {
	if n <= cap(r.value) {
		return r
	}
	larger := newRecord(n)
	larger.start, larger.mass, larger.lines = r.start, r.mass, r.lines
	larger.booked, larger.parts, larger.heldBack = r.booked, r.parts, r.heldBack
	larger.value = append(larger.value, r.value...)
	r.free()
	return larger
}

// free gives the record to who needs one next. The producer has let go of it: it
// sends a copy of the value, and of what was delivered it looks at nothing more.
func (r *record) free() {
	i := class(cap(r.value))
	*r = record{msg: r.msg, value: r.value[:0], headers: r.headers[:0]}
	free[i].Put(r)
}

// seal makes the record ready for the producer.
func (r *record) seal(topic string, head *wire.RecordHead, scratch []wire.Header) []wire.Header {
	r.seq = head.Seq
	scratch = wire.AppendRecordHead(scratch[:0], head)
	for i := range scratch {
		r.headers = append(r.headers, sarama.RecordHeader{Key: headerKeys[scratch[i].Key], Value: scratch[i].Value})
	}
	if r.msg == nil {
		r.msg = new(sarama.ProducerMessage)
	}
	*r.msg = sarama.ProducerMessage{Topic: topic, Partition: r.partition, Value: r, Headers: r.headers, Metadata: r}
	return scratch
}

// back takes the record back from the producer, which may look at a message once
// more after it told of its failure: that one is left to it.
func (r *record) back() {
	m := r.msg
	r.msg = &sarama.ProducerMessage{Topic: m.Topic, Partition: r.partition, Value: r, Headers: r.headers, Metadata: r}
}

// twin returns a copy that shares nothing with the record and takes as much of the
// buffer. The record itself is left to a producer that does not give it back.
func (r *record) twin() *record {
	t := newRecord(cap(r.value))
	value, headers := t.value[:0], t.headers[:0]
	value = append(value, r.value...)
	headers = append(headers, r.headers...)
	*t = *r
	t.value, t.headers, t.next = value, headers, nil
	t.msg = &sarama.ProducerMessage{Topic: r.msg.Topic, Partition: r.partition, Value: t, Headers: t.headers, Metadata: t}
	return t
}

// headerKeys are the names of headers as bytes, which are not changed.
var headerKeys = func() map[string][]byte {
	keys := make(map[string][]byte)
	all := wire.RecordHead{Meta: wire.Meta{Aged: 1, Sent: 1, Groups: 1, Sums: wire.Sums{Told: true}}} // with all headers
	for _, h := range wire.AppendRecordHead(nil, &all) {
		keys[h.Key] = []byte(h.Key)
	}
	return keys
}()
