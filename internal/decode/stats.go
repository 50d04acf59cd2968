package decode

import (
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/base"
)

// Counters are the counters of a decoder since it was made. N is int64 in [Stats], and
// [atomic.Int64] while they count.
type Counters[N any] struct {
	Packets, Lines, Counts N
	// Sum is the sum of the counts.
	Sum N
	// Malformed to NoRule are the lines that were no counts, by reason.
	Malformed, Foreign, NotCounter, Negative, BadKey, NoRule N
	// Events are DogStatsD's events and service checks, which are no counts either.
	Events N
	// LostPackets are gaps in the senders' sequences. Recovered are packets that were missing
	// and arrived after all, and Duplicates are packets that arrived twice.
	LostPackets, Recovered, Duplicates N
	// Origins are lines that report origins of a hot key's counts. HeldBack are lines that
	// report held-back counts of a group.
	Origins, HeldBack N
	// Aged are counts that instances held back until they were older than any window.
	Aged N
	// Healed are counts of lost packets that later lines of the same keys made up for. Retold
	// are healed counts whose packets arrived after all.
	Healed, Retold N
	// Uncanonical are counts of other programs whose keys had to be made canonical.
	Uncanonical N
	// Samples are counts that are estimates.
	Samples N
	// Refused are packets that were not believed, by reason.
	Refused [Refusals]N
}

// Stats are a decoder's counters, and the state of its senders.
type Stats struct {
	Counters[int64]
	// Senders are the instances that sent packets lately.
	Senders int64
	// Late are the senders whose counts arrive late.
	Late LateSenders
	// Off are the senders whose clocks are off.
	Off OffClocks
	// LastRefused is the newest refusal.
	LastRefused LastRefused
}

// LastRefused is the reason and the clock time of the newest refusal. The zero value means
// never.
type LastRefused struct {
	When time.Time
	Why  PacketRefusal
}

// Merge adds the counters of another decoder. Senders is the maximum, as the same instances
// send to all.
func (s *Stats) Merge(o *Stats) {
	base.AddCounters(&s.Counters, &o.Counters)
	s.Senders = max(s.Senders, o.Senders)
	s.Late.merge(o.Late)
	s.Off.merge(o.Off)
	if o.LastRefused.When.After(s.LastRefused.When) {
		s.LastRefused = o.LastRefused
	}
}

type decoderStats struct {
	Counters[atomic.Int64]
	lastRefused atomic.Int64 // in ns since the Unix epoch, by the clock
	whyRefused  atomic.Int64
}

// SenderClock is the clock of an instance that is off.
type SenderClock struct {
	Name string
	// Behind is how far it is behind the clock that stamps arrivals. Negative means ahead.
	Behind time.Duration
	// Corrected reports whether counts are placed as if the clock were right.
	Corrected bool
}

// OffClocks are the instances whose clocks are off by more than [DefaultLag].
type OffClocks struct {
	N     int64       // number of instances
	Worst SenderClock // the clock that is furthest off
}

// merge adds the clocks of another decoder, which may include the same ones.
func (o *OffClocks) merge(other OffClocks) {
	o.N = max(o.N, other.N)
	if other.Worst.Behind.Abs() > o.Worst.Behind.Abs() {
		o.Worst = other.Worst
	}
}

// LateSenders are the instances whose counts are all older than [DefaultGrace] on arrival,
// because their clocks are slow or their packets take that long.
type LateSenders struct {
	N      int64         // number of instances
	Latest string        // name of the instance with the oldest counts
	Age    time.Duration // age of its counts
}

// merge adds the senders of another decoder, which may include the same ones.
func (l *LateSenders) merge(o LateSenders) {
	l.N = max(l.N, o.N)
	if o.Age > l.Age {
		l.Latest, l.Age = o.Latest, o.Age
	}
}
