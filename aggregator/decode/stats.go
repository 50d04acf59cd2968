package decode

import (
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/countset"
)

// Counters are what a decoder has counted since it was made. N is int64 in [Stats], and
// [atomic.Int64] while they count.
type Counters[N any] struct {
	Packets, Lines, Counts N
	// Sum is what the counts add up to.
	Sum N
	// Malformed to NoRule are the lines that were no counts, by reason.
	Malformed, Foreign, NotCounter, Negative, BadKey, NoRule N
	// Events are DogStatsD's events and service checks, which are no counts either.
	Events N
	// LostPackets are gaps in the senders' sequences. Recovered are packets that made
	// such a gap and came after all. Duplicates are packets that came twice.
	LostPackets, Recovered, Duplicates N
	// Origins are lines about where counts of a hot key come from. HeldBack are lines
	// about what is held back of a group.
	Origins, HeldBack N
	// Aged is what instances held back until it was older than any window.
	Aged N
	// Healed are counts of lost packets that later lines of the same keys made up for.
	// Retold are those of them whose packets came after all.
	Healed, Retold N
	// Uncanonical are counts of other programs whose keys were not canonical. They are
	// counted as what they are in canonical form.
	Uncanonical N
	// Samples are counts that are estimates.
	Samples N
	// Refused are packets that were not believed, by reason.
	Refused [Refusals]N
}

// Stats are a decoder's counters, and the state of its senders.
type Stats struct {
	Counters[int64]
	// Senders are the instances heard of lately.
	Senders int64
	// Late are those of the senders whose counts come late.
	Late LateSenders
	// Off are those of the senders whose clocks are off.
	Off OffClocks
	// LastRefused is the last packet that was not believed.
	LastRefused LastRefused
}

// LastRefused is when, by the clock, something was not believed last, and why. The zero
// value means never.
type LastRefused struct {
	When time.Time
	Why  Refusal
}

// Stats returns the counters. It is safe for concurrent use.
func (d *Decoder) Stats() Stats {
	s := &d.stats
	all := Stats{
		Counters: countset.Load[Counters[int64]](&s.Counters),
		Senders:  d.senders.known.Load(), Late: d.senders.lateNow(), Off: d.senders.offNow(),
	}
	if ns := s.lastRefused.Load(); ns > 0 {
		all.LastRefused = LastRefused{time.Unix(0, ns), Refusal(s.whyRefused.Load())}
	}
	return all
}

// Merge adds the counters of another decoder. Senders are the most that any had:
// the same instances send to all.
func (s *Stats) Merge(o *Stats) {
	countset.Add(&s.Counters, &o.Counters)
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
