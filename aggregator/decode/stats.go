package decode

import (
	"sync/atomic"
	"time"
)

// Stats are a decoder's counters since it was made.
type Stats struct {
	Packets, Lines, Counts int64
	// Sum is the sum of the counts.
	Sum int64
	// Lines that were no counts, by reason.
	Malformed, Foreign, NotCounter, Negative, BadKey, NoRule int64
	// Events are DogStatsD's events and service checks, which are no counts either.
	Events int64
	// LostPackets are gaps in the senders' sequences. Recovered are packets that were missing
	// and arrived after all, Duplicates are packets that arrived twice, and Senders are the
	// instances that were heard of lately.
	LostPackets, Recovered, Duplicates, Senders int64
	// Late are the senders whose counts arrive late.
	Late LateSenders
	// Off are the senders whose clocks are off.
	Off OffClocks
	// Origins are lines that report where counts of a hot key come from, and HeldBack those
	// that report what is held back of a group.
	Origins, HeldBack int64
	// Aged are counts that instances held back until they were older than any window.
	Aged int64
	// Healed are counts of lost packets that later lines of the same keys made up for,
	// Retold those of them whose packets came after all.
	Healed, Retold int64
	// Uncanonical are counts of other programs whose keys were not canonical and were made
	// so.
	Uncanonical int64
	// Samples are counts that are estimates.
	Samples int64
	// Refused are packets that were not believed, by reason.
	Refused [Refusals]int64
	// LastRefused is the newest of them.
	LastRefused LastRefused
}

// LastRefused is when something was last refused, and why. The zero value means never.
type LastRefused struct {
	When time.Time
	Why  Refusal
}

// Merge adds the counters of another decoder. Senders is the maximum, as the same instances
// send to all.
func (s *Stats) Merge(o *Stats) {
	s.Packets += o.Packets
	s.Lines += o.Lines
	s.Counts += o.Counts
	s.Sum += o.Sum
	s.Malformed += o.Malformed
	s.Foreign += o.Foreign
	s.NotCounter += o.NotCounter
	s.Negative += o.Negative
	s.BadKey += o.BadKey
	s.NoRule += o.NoRule
	s.Events += o.Events
	s.LostPackets += o.LostPackets
	s.Recovered += o.Recovered
	s.Duplicates += o.Duplicates
	s.Senders = max(s.Senders, o.Senders)
	s.Late.merge(o.Late)
	s.Off.merge(o.Off)
	s.Origins += o.Origins
	s.HeldBack += o.HeldBack
	s.Aged += o.Aged
	s.Healed += o.Healed
	s.Retold += o.Retold
	s.Uncanonical += o.Uncanonical
	s.Samples += o.Samples
	for i := range s.Refused {
		s.Refused[i] += o.Refused[i]
	}
	if o.LastRefused.When.After(s.LastRefused.When) {
		s.LastRefused = o.LastRefused
	}
}

type decoderStats struct {
	packets, lines, counts, sum                                atomic.Int64
	malformed, foreign, notCounter, negative, encoding, noRule atomic.Int64
	lostPackets, recovered, duplicates, aged, origins, events  atomic.Int64
	heldBack                                                   atomic.Int64
	healed, retold                                             atomic.Int64
	uncanonical, samples                                       atomic.Int64
	refused                                                    [Refusals]atomic.Int64
	lastRefused                                                atomic.Int64 // in ns since the Unix epoch, by the clock
	whyRefused                                                 atomic.Int64
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

// merge adds those of another decoder, which may be the same ones.
func (o *OffClocks) merge(other OffClocks) {
	o.N = max(o.N, other.N)
	if other.Worst.Behind.Abs() > o.Worst.Behind.Abs() {
		o.Worst = other.Worst
	}
}

// LateSenders are the instances all of whose counts are older than [DefaultGrace] when they
// arrive: their clocks are slow, or their packets take that long.
type LateSenders struct {
	N      int64         // number of instances
	Latest string        // the one whose counts are oldest
	Age    time.Duration // of its counts
}

// merge adds those of another decoder, which may be the same ones.
func (l *LateSenders) merge(o LateSenders) {
	l.N = max(l.N, o.N)
	if o.Age > l.Age {
		l.Latest, l.Age = o.Latest, o.Age
	}
}
