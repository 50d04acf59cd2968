package aggregator

import (
	"bytes"
	"errors"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/wire"
)

// Count is what one line says: rule number Rule of the rules saw the key with
// this text N times, at When or soon after.
type Count struct {
	Rule int
	Hash uint64 // hotparam.Hash of the text
	Text []byte
	N    int64
	When time.Time
}

// Handler takes what a decoder finds in packets.
type Handler interface {
	// Count takes one count; its text is valid during the call only.
	Count(Count)
	// Hidden tells that counts of n in sum, of any keys, at when or soon after
	// will never come.
	Hidden(when time.Time, n int64)
	// Lost tells that packets of when or soon after went missing.
	Lost(when time.Time)
}

// Decoder turns packets of StatsD lines into counts. A malformed line is
// counted and passed over. One goroutine uses a Decoder; Stats is safe for all.
type Decoder struct {
	encoding wire.Encoding
	rules    map[string]int // prefix → rule
	senders  senders
	text     []byte
	stats    decoderStats
}

type decoderStats struct {
	packets, lines, counts                                     atomic.Int64
	malformed, foreign, notCounter, negative, encoding, noRule atomic.Int64
	lostPackets, recovered, duplicates, senders                atomic.Int64
}

// NewDecoder makes a decoder for the rules that have a threshold.
func NewDecoder(rules *hotparam.Rules, e wire.Encoding) *Decoder {
	d := &Decoder{encoding: e, rules: make(map[string]int)}
	for i := range rules.Rules {
		if rule := &rules.Rules[i]; rule.Hot != nil {
			d.rules[rule.CountPrefix(rules.Namespace)] = i
		}
	}
	return d
}

// Packet decodes one packet that arrived now. Counts are of the time that the
// packet's meta line names, but never later than now, so that a sender whose
// clock is fast moves nobody else's windows; without a meta line they are of
// now.
func (d *Decoder) Packet(packet []byte, now time.Time, h Handler) {
	d.stats.packets.Add(1)
	when := now
	var lines, counts int64
	for first := true; len(packet) > 0; first = false {
		line := packet
		if end := bytes.IndexByte(packet, '\n'); end >= 0 {
			line, packet = packet[:end], packet[end+1:]
		} else {
			packet = nil
		}
		line = bytes.TrimSuffix(line, []byte{'\r'})
		if len(line) == 0 {
			continue
		}
		if first && wire.IsMeta(line) {
			var ok bool
			if when, ok = d.meta(line, now, h); !ok {
				return
			}
			continue
		}
		lines++
		if d.line(line, when, h) {
			counts++
		}
	}
	d.stats.lines.Add(lines)
	d.stats.counts.Add(counts)
}

// meta reads a packet's meta line. It is false for a packet that has been seen.
func (d *Decoder) meta(line []byte, now time.Time, h Handler) (time.Time, bool) {
	m, err := wire.ParseMeta(line)
	if err != nil {
		d.stats.malformed.Add(1)
		return now, true
	}
	when := time.Unix(0, m.Start)
	if when.After(now) {
		when = now
	}
	lost, duplicate := d.senders.packet(m, now)
	d.stats.senders.Store(int64(d.senders.len()))
	if duplicate {
		d.stats.duplicates.Add(1)
		return when, false
	}
	switch {
	case lost > 0:
		d.stats.lostPackets.Add(lost)
		h.Lost(when)
	case lost < 0:
		d.stats.recovered.Add(-lost)
	}
	// Bounded, so that no claim wraps around to nothing.
	if hidden := min(m.Unsent, wire.MaxCount) + min(m.Held, wire.MaxCount) - 1; hidden > 0 {
		h.Hidden(when, hidden)
	}
	return when, true
}

func (d *Decoder) line(line []byte, when time.Time, h Handler) bool {
	l, err := wire.ParseLine(line)
	if err != nil {
		d.reject(err)
		return false
	}
	rule, ok := d.rules[string(l.Prefix)]
	if !ok {
		d.stats.noRule.Add(1)
		return false
	}
	if d.text, err = d.encoding.AppendDecoded(d.text[:0], l.Key); err != nil {
		d.stats.encoding.Add(1)
		return false
	}
	if l.N > 0 {
		h.Count(Count{Rule: rule, Hash: hotparam.Hash(d.text), Text: d.text, N: l.N, When: when})
	}
	return true
}

func (d *Decoder) reject(err error) {
	switch {
	case errors.Is(err, wire.ErrForeign):
		d.stats.foreign.Add(1)
	case errors.Is(err, wire.ErrNotCounter):
		d.stats.notCounter.Add(1)
	case errors.Is(err, wire.ErrNegative):
		d.stats.negative.Add(1)
	default:
		d.stats.malformed.Add(1)
	}
}

// DecoderStats are a decoder's counters since it was made.
type DecoderStats struct {
	Packets, Lines, Counts int64
	// Lines that were no counts, by reason.
	Malformed, Foreign, NotCounter, Negative, BadKey, NoRule int64
	// LostPackets are gaps in the senders' sequences, Recovered are packets
	// that made such a gap and came after all, Duplicates are packets that came
	// twice, Senders are the instances heard of lately.
	LostPackets, Recovered, Duplicates, Senders int64
}

// Stats tells the counters. It is safe for concurrent use.
func (d *Decoder) Stats() DecoderStats {
	s := &d.stats
	return DecoderStats{
		Packets: s.packets.Load(), Lines: s.lines.Load(), Counts: s.counts.Load(),
		Malformed: s.malformed.Load(), Foreign: s.foreign.Load(), NotCounter: s.notCounter.Load(),
		Negative: s.negative.Load(), BadKey: s.encoding.Load(), NoRule: s.noRule.Load(),
		LostPackets: s.lostPackets.Load(), Recovered: s.recovered.Load(), Duplicates: s.duplicates.Load(), Senders: s.senders.Load(),
	}
}
