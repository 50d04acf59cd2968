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

// Stats returns the counters. It is safe for concurrent use.
func (d *Decoder) Stats() Stats {
	s := &d.stats
	all := Stats{
		Packets: s.packets.Load(), Lines: s.lines.Load(), Counts: s.counts.Load(), Sum: s.sum.Load(),
		Malformed: s.malformed.Load(), Foreign: s.foreign.Load(), NotCounter: s.notCounter.Load(),
		Negative: s.negative.Load(), BadKey: s.encoding.Load(), NoRule: s.noRule.Load(), Events: s.events.Load(),
		LostPackets: s.lostPackets.Load(), Recovered: s.recovered.Load(), Duplicates: s.duplicates.Load(), Senders: d.senders.known.Load(), Aged: s.aged.Load(), Origins: s.origins.Load(), HeldBack: s.heldBack.Load(),
		Healed: s.healed.Load(), Retold: s.retold.Load(),
		Late: d.senders.lateNow(), Off: d.senders.offNow(), Uncanonical: s.uncanonical.Load(), Samples: s.samples.Load(),
	}
	for i := range s.refused {
		all.Refused[i] = s.refused[i].Load()
	}
	if ns := s.lastRefused.Load(); ns > 0 {
		all.LastRefused = LastRefused{time.Unix(0, ns), Refusal(s.whyRefused.Load())}
	}
	return all
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
