package collector

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// Count is one key's count in one flush. The bytes are only valid during the call.
type Count struct {
	Rule []byte // the rule's id
	Text []byte // the key's canonical text
	N    int64  // number of occurrences, or cost
	// Start is the earliest possible time of the count, if that is before the flush's Start
	// because the count was held back. Zero means the flush's Start.
	Start time.Time
	// Account is the running total of the key's counts including this one, if the key has an
	// account. If N is 0, only the Account is to be sent.
	Account wire.Account
}

// Flush holds the statements of one flush in addition to its counts.
type Flush struct {
	// Start is the earliest possible time of the counts, and Now the time when they were
	// taken. Now is zero in a [Collector.Flush].
	Start, Now time.Time
	// Held is above the unsent count of each key.
	Held int64
	// Unsent is an upper bound on the counts of any one key dropped since the last flush.
	Unsent int64
	// Aged is the sum, over all keys, of the counts given up since the last flush. They were held
	// back for longer than the window, or their key was dropped for lack of room or with its
	// rule. They will never be sent.
	Aged int64
	// Opened is the number of accounts opened so far. Shed is the number of accounts that could
	// not be kept for as long as receivers expect ([wire.Sums]).
	Opened, Shed uint64
	// HeldBack lists the counts of groups that the collector holds back. It is empty unless
	// the sink has the capability Groups.
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

// Sink sends counts. The collector calls all methods but Fit from one goroutine.
type Sink interface {
	// Capabilities returns what the sink and its receivers can do in addition to counting. The
	// result is always the same.
	Capabilities() Capabilities
	// Send sends one flush. A flush without counts shows that the instance is alive. Send
	// returns the sums of the counts that could not be sent, by reason. A sink that learns of
	// a failure only later returns it from a later Send. Counts are ordered by Start, the
	// earliest first. Send must not block for long, and must not keep its arguments.
	Send(ctx context.Context, flush Flush, counts []Count) Sent
	// Fit returns the text itself if it fits, or a shortened text that differs from other
	// keys' texts. It may change the text in place, and must be safe for concurrent use.
	Fit(text []byte) []byte
	// SetRules replaces the rules ([Collector.Reload]). Counts of removed rules may still follow:
	// of requests that began under the old rules, and counts that were held back. rules is nil if
	// the collector has none. It must not be changed.
	SetRules(rules *rules.Rules)
	// SendOrigins sends origins that were sampled before start, the present time. Origins that
	// cannot be sent are dropped: nothing depends on them. It is called only if Capabilities has
	// Origins.
	SendOrigins(ctx context.Context, start time.Time, origins []KeyOrigin) Sent
	// Close releases the sink's resources.
	Close() error
}

// Capabilities are what a [Sink] and its receivers can do in addition to counting.
type Capabilities struct {
	// Accounts means that the receivers read accounts. Hot keys and candidates are then sent with
	// the sum of all their counts, which lets a receiver recover lost counts.
	Accounts bool
	// Groups means that the receivers add up the held-back counts of groups ([Flush.HeldBack]).
	Groups bool
	// Origins means that the sink sends the origins of hot keys' requests.
	Origins bool
	// Patient means that the receivers read counts only about once a second, as a StatsD server in
	// front of Graphite does. Nothing is then sent between the flushes, since no receiver reads
	// urgent counts sooner. (Finding keys that are hot on this instance alone needs no sending, so
	// it is as early as with other sinks.)
	Patient bool
}

// CountsOnly is for embedding in a [Sink] that only sends counts, whatever the rules.
type CountsOnly struct{}

// Capabilities implements [Sink].
func (CountsOnly) Capabilities() Capabilities { return Capabilities{} }

// SetRules implements [Sink].
func (CountsOnly) SetRules(*rules.Rules) {}

// SendOrigins implements [Sink].
func (CountsOnly) SendOrigins(context.Context, time.Time, []KeyOrigin) Sent { return Sent{} }

// Sent is the result of a flush.
type Sent struct {
	Lines, Packets int64
	// TooLong is the sum of the counts whose line does not fit into a packet. Failed is the
	// sum of the counts whose packet could not be sent, and Err is the last error of sending
	// one.
	TooLong, Failed int64
	Err             error
}

// NewIncarnation returns a random number. Sinks send it so that receivers can distinguish a
// process from an earlier one with the same name.
func NewIncarnation() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}

// DefaultInstance returns the default name of an instance: host name and process id.
func DefaultInstance() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	clean := strings.Map(func(r rune) rune {
		if r < 0x80 && wire.ValidInstance(string(r)) {
			return r
		}
		return '-'
	}, host)
	return fmt.Sprintf("%.40s-%d", clean, os.Getpid())
}
