package collector

import (
	"context"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
)

// Count is one key's count of one flush. The bytes are only valid during the call.
type Count struct {
	Rule []byte // the rule's id
	Text []byte // the key's canonical text
	N    int64  // how often the key came
	// Start is the first instant that the count can be of, if that is before the
	// flush's Start because the count was held back. Zero means the flush's Start.
	Start time.Time
	// Account is the key's account after this count, if it has one. If N is 0, only the
	// Account is to be sent.
	Account wire.Account
}

// Flush is what one flush states besides its counts.
type Flush struct {
	// Start is the first instant that the counts can be of, and Now when they were
	// taken. Now is zero in a [Collector.Flush].
	Start, Now time.Time
	// Held is h: the unsent count of each key is below it.
	Held int64
	// Unsent is an upper bound on the dropped counts of any one key since the last
	// flush.
	Unsent int64
	// Aged is the sum of the counts, of all keys and since the last flush, that will
	// never be sent, as they were held back for longer than the window.
	Aged int64
	// Opened and Shed are the sums of accounts ([wire.Sums]).
	Opened, Shed uint64
	// HeldBack lists how much of each group the collector holds back. It is empty unless the
	// sink is a [GroupSink].
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

// BeatEvery is the longest time in which an instance sends nothing. By its heartbeats
// receivers know that it is alive, and notice the loss of the last packet. A sink with
// several receivers sends them to each.
const BeatEvery = time.Second

// Sink sends counts. The collector calls Send and Close from one goroutine.
type Sink interface {
	// Send sends one flush, even if it has no counts, which shows that the instance is
	// alive. It returns the sums of the counts that could not be sent, by reason. A sink
	// that learns only later what failed returns that by a later Send. Counts are
	// ordered by Start, the earliest first. Send must not block for long, and must not
	// keep its arguments.
	Send(ctx context.Context, flush Flush, counts []Count) Sent
	// Fit returns the text itself if it fits, or a shortened text that differs from that
	// of other keys. It may change the text in place, and must be safe for concurrent
	// use.
	Fit(text []byte) []byte
	// Close releases the sink's resources.
	Close() error
}

// PatientSink is a [Sink] whose receiver looks at counts only once in a second or so, as
// a StatsD server in front of Graphite does, and has no use for urgent counts. Keys that
// are hot by the count of this instance alone are found as early as with other sinks.
type PatientSink interface {
	// Patient reports whether nothing is to be sent between the flushes.
	Patient() bool
}

// Sent is the result of a flush.
type Sent struct {
	Lines, Packets int64
	// TooLong is the sum of the counts whose line does not fit into a packet, and
	// Failed of those whose packet could not be sent. Err is the last error of the
	// latter.
	TooLong, Failed int64
	Err             error
}
