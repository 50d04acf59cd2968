package kafkasink

import (
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
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

// records holds used records with their buffers.
var records = sync.Pool{New: func() any { return new(record) }}

// free returns the record to the pool. The producer must not have it: it sends a copy of the
// value, and does not use a message after reporting it.
func (r *record) free() {
	*r = record{msg: r.msg, value: r.value[:0], headers: r.headers[:0]}
	records.Put(r)
}

// address makes the record's message. The producer stamps it with the time when it receives
// the message.
func (r *record) address(topic string) {
	if r.msg == nil {
		r.msg = new(kgo.Record)
	}
	*r.msg = kgo.Record{Topic: topic, Partition: r.partition, Value: r.value, Headers: r.headers}
}

// leave leaves the message to a producer that does not return it. The record gets another one,
// which shares nothing with it and has the same size.
func (r *record) leave(topic string) {
	r.msg, r.headers = nil, slices.Clone(r.headers)
	r.value = append(make([]byte, 0, cap(r.value)), r.value...)
	r.address(topic)
}
