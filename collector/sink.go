package collector

import (
	"context"
	"time"

	"github.com/hotparam/hotparam/wire"
)

// Count is one key's count of one flush: the rule's id, the key's canonical
// text, and how often it came. The bytes are valid during the call only.
type Count struct {
	Rule []byte
	Text []byte
	N    int64
	// Start is the first instant that the count can be of, if that is before the
	// flush's: part of it was held back. Zero: the flush's.
	Start time.Time
	// Account is the key's after this count, if it has one. With an N of 0 the
	// Account is all there is to send.
	Account wire.Account
}

// Flush is what one flush states besides its counts.
type Flush struct {
	// Start is the first instant that the counts can be of, Now when they were taken; the
	// latter is zero if a caller of [Collector.Flush] keeps the time.
	Start, Now time.Time
	// Held is h: each key's unsent count is below it.
	Held int64
	// Unsent is what may have been dropped of any one key since the last flush.
	Unsent int64
	// Aged is how much of all keys was held back until it was older than the
	// window, since the last flush.
	Aged int64
	// Opened and Shed are the sums of accounts ([wire.Sums]).
	Opened, Shed uint64
	// HeldBack is what is held back of groups, to a [GroupSink].
	HeldBack []HeldBack
}

// SendTime returns the instant at which packets of f are sent as they state it, in
// nanoseconds since the Unix epoch: Now, or 0 if Now is zero. A packet that is signed
// always states one, since who verifies it refuses packets that are old.
func (f *Flush) SendTime(signed bool) int64 {
	switch {
	case !f.Now.IsZero():
		return f.Now.UnixNano()
	case signed:
		return time.Now().UnixNano()
	}
	return 0
}

// BeatEvery is the longest time in which an instance sends nothing: its receivers
// learn that it lives, and notice the loss of the last packet. A sink with several
// receivers keeps to it for each of them.
const BeatEvery = time.Second

// Sink is where counts go. The collector calls it from one goroutine.
type Sink interface {
	// Send sends one flush. It returns how many counts (the sum of their N) it
	// could not send, by reason. It must not block for long, and must not keep its
	// arguments. A sink that learns later what failed returns that with a later flush.
	// Counts are ordered by Start, the earliest first. A flush without counts is sent
	// all the same: it says that the instance lives.
	Send(ctx context.Context, flush Flush, counts []Count) Sent
	// Fit shortens a text that is too long for the sink, so that it keeps its
	// identity; one that fits is returned as it is. It is called by any
	// goroutine, and may change the text in place.
	Fit(text []byte) []byte
	// Close releases what the sink holds.
	Close() error
}

// PatientSink is a [Sink] whose receiver looks at counts once in a second or so, as
// a StatsD in front of Graphite does: counts each 5 ms would gain it nothing. What is hot
// by the count of this instance alone is found as soon.
type PatientSink interface {
	// Patient reports whether nothing is to be sent between the flushes.
	Patient() bool
}

// Sent is what became of a flush.
type Sent struct {
	Lines, Packets int64
	// TooLong and Failed are the sums of counts whose line fits no packet, and
	// whose packet could not be sent; Err is the last error of the latter.
	TooLong, Failed int64
	Err             error
}
