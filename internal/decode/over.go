package decode

import (
	"time"

	"github.com/hotparam/hotparam/internal/wire"
)

// exceededCap returns the cap that a packet exceeds. refused is false if it exceeds none. The
// counts of a refused packet are not added.
func (d *Decoder) exceededCap(t *tally, counts []Count, sum int64, now time.Time) (why Refusal, refused bool) {
	caps := &d.trust.Caps
	if d.inBytes {
		sum = d.weight(counts)
	}
	sum += d.heldInGroups
	t.mu.Lock()
	defer t.mu.Unlock()
	if second := now.Unix(); second > t.second || second < t.second-1 { // the times of different readers are not in order
		t.second, t.counts, t.lines = second, 0, 0
	}
	if caps.Counts > 0 && sum > caps.Counts-t.counts {
		return RefusedCounts, true
	}
	// A quarter of the lines may have any keys, so a sender with fewer lines needs no check.
	if caps.Keys > 0 && t.lines+len(counts) > caps.Keys/4 {
		if !d.trust.sets.addKeys(t, t.second, caps.Keys, counts) {
			return RefusedKeys, true
		}
	}
	t.counts += sum
	t.lines += len(counts)
	return 0, false
}

// exceedsCap reports whether a packet exceeds a cap of its sender. If it does, none of its counts
// are used. They did arrive, so the next packet does not report them as missing.
func (d *Decoder) exceedsCap(m *wire.Meta, from *sender, when time.Time, sum int64, h Handler) bool {
	var t *tally
	if from != nil {
		t = &from.tally
	} else {
		t = d.tallies.forAddr(d.source(), d.now)
	}
	why, refused := d.exceededCap(t, d.counts, sum, d.now)
	if !refused {
		return false
	}
	instance := ""
	if from != nil {
		instance = from.name
	}
	d.refuse(why, d.source(), instance)
	if from == nil || !m.Sums.Told {
		return true
	}
	d.senders.mu.Lock()
	defer d.senders.mu.Unlock()
	if from.incarnation == m.Incarnation {
		sums := d.packetSums(sum)
		d.senders.finishPacket(&from.accounts, m, when, &sums, h)
	}
	return true
}

// weight returns the sum of counts, those of bytes in KiB.
func (d *Decoder) weight(counts []Count) (sum int64) {
	for i := range counts {
		if n := counts[i].N; d.bytes[counts[i].Rule] {
			sum += n >> 10
		} else {
			sum += n
		}
	}
	return sum
}
