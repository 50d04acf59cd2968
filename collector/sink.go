package collector

import (
	"context"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
)

// Count is one key's count in one flush. The bytes are only valid during the call.
type Count struct {
	Rule []byte // the rule's id
	Text []byte // the key's canonical text
	N    int64  // number of occurrences, or cost
	// Start is the earliest possible time of the count, if that is before the flush's Start
	// because the count was held back. Zero means the flush's Start.
	Start time.Time
	// Account is the key's account after this count, if it has one. If N is 0, only the
	// Account is to be sent.
	Account wire.Account
}

// Flush holds the statements of one flush in addition to its counts.
type Flush struct {
	// Start is the earliest possible time of the counts, and Now the time when they were
	// taken. Now is zero in a [Collector.Flush].
	Start, Now time.Time
	// Held is h: the unsent count of each key is below it.
	Held int64
	// Unsent is an upper bound on the counts of any one key dropped since the last flush.
	Unsent int64
	// Aged is the sum, over all keys, of the counts given up since the last flush because they
	// were held back for longer than the window. They will never be sent.
	Aged int64
	// Opened and Shed are the sums of accounts ([wire.Sums]).
	Opened, Shed uint64
	// HeldBack lists the counts of groups that the collector holds back. It is empty unless
	// the sink is a [GroupSink].
	HeldBack []HeldBack
}

// SendTime returns the time of sending that packets of f state, in nanoseconds since the
// Unix epoch: Now, or 0 if Now is zero. A signed packet always states a time, since
// receivers refuse old packets.
func (f *Flush) SendTime(signed bool) int64 {
	switch {
	case !f.Now.IsZero():
		return f.Now.UnixNano()
	case signed:
		return time.Now().UnixNano()
	}
	return 0
}

// BeatEvery is the longest time in which an instance sends nothing. Heartbeats show receivers
// that it is alive, and let them notice the loss of the last packet. A sink with several
// receivers sends heartbeats to each.
const BeatEvery = time.Second

// Sink sends counts. The collector calls Send and Close from one goroutine.
type Sink interface {
	// Send sends one flush. A flush without counts shows that the instance is alive. Send
	// returns the sums of the counts that could not be sent, by reason. A sink that learns of
	// a failure only later returns it from a later Send. Counts are ordered by Start, the
	// earliest first. Send must not block for long, and must not keep its arguments.
	Send(ctx context.Context, flush Flush, counts []Count) Sent
	// Fit returns the text itself if it fits, or a shortened text that differs from other
	// keys' texts. It may change the text in place, and must be safe for concurrent use.
	Fit(text []byte) []byte
	// Close releases the sink's resources.
	Close() error
}

// PatientSink is a [Sink] whose receiver reads counts only about once a second, as a StatsD
// server in front of Graphite does. Urgent counts are of no use to it. Keys that are hot by the
// count of this instance alone are found as early as with other sinks.
type PatientSink interface {
	// Patient reports whether nothing should be sent between the flushes.
	Patient() bool
}

// Sent is the result of a flush.
type Sent struct {
	Lines, Packets int64
	// TooLong is the sum of the counts whose line does not fit into a packet. Failed is the
	// sum of the counts whose packet could not be sent, and Err is the last error of sending
	// one.
	TooLong, Failed int64
	Err             error
}
