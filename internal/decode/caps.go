package decode

import (
	"net/netip"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
)

// Caps bound the counts of one sender: an instance, or an address whose packets name none. They
// are far above the needs of any sender of ours. A packet over a cap is dropped and counted. It
// is not a loss, so it raises no key's high count. A zero field means no bound.
type Caps struct {
	// Counts is the most that one sender may count in a second, of all keys; in KiB for rules
	// that count bytes. It may claim to have lost or dropped as much as in a minute.
	Counts int64
	// Keys is the most different keys that a sender may count in a second.
	Keys int
	// Names is the most instances that are followed at a time. NewNames is the most of them
	// that may come from one address within a minute.
	Names, NewNames int
}

// DefaultCaps are the caps of the daemon.
var DefaultCaps = Caps{Counts: 100_000_000, Keys: 250_000, Names: 10_000, NewNames: 1_000}

// claims returns the most that a sender may report as missing. Zero means no bound.
func (c *Caps) claims() uint64 { return uint64(c.Counts) * 60 }

// maxPlain bounds the addresses whose packets name no instance. Further addresses share a
// tally.
const maxPlain = 4096

// plainTallies are the tallies of packets that name no instance, by address.
type plainTallies struct {
	byAddr map[netip.Addr]*secondCounts
	others secondCounts
	swept  int64
}

// forAddr returns the tally of an address.
func (p *plainTallies) forAddr(from netip.Addr, now time.Time) *secondCounts {
	if second := now.Unix(); second > p.swept+10 || second < p.swept {
		p.swept = second
		for a, t := range p.byAddr {
			if t.second < second-10 {
				delete(p.byAddr, a)
			}
		}
	}
	t := p.byAddr[from]
	if t != nil {
		return t
	}
	if len(p.byAddr) >= maxPlain {
		return &p.others
	}
	if p.byAddr == nil {
		p.byAddr = make(map[netip.Addr]*secondCounts)
	}
	t = new(secondCounts)
	p.byAddr[from] = t
	return t
}

// nameCaps bound the number of instances, and of new ones from one address. The senders' lock
// guards them.
type nameCaps struct {
	caps      *Caps
	minute    int64
	newByAddr map[netip.Addr]int // new instances in this minute; at most as many as there are instances
}

func newNameCaps(c *Caps) *nameCaps {
	if c.Names == 0 && c.NewNames == 0 {
		return nil
	}
	return &nameCaps{caps: c, newByAddr: make(map[netip.Addr]int)}
}

// admit reports whether another instance may be followed, in addition to known others. Packets
// of Unix sockets and records of Kafka have no address; access to these is controlled
// elsewhere.
func (n *nameCaps) admit(from netip.Addr, known int, now time.Time) bool {
	if n.caps.Names > 0 && known >= n.caps.Names {
		return false
	}
	if !from.IsValid() {
		return true
	}
	if minute := now.Unix() / 60; minute != n.minute {
		n.minute = minute
		clear(n.newByAddr)
	}
	if n.caps.NewNames > 0 && n.newByAddr[from] >= n.caps.NewNames {
		return false
	}
	n.newByAddr[from]++
	return true
}

// exceededCap returns the cap that a packet exceeds. refused is false if it exceeds none. The
// counts of a refused packet are not added.
func (d *Decoder) exceededCap(t *secondCounts, counts []Count, sum int64, now time.Time) (why PacketRefusal, refused bool) {
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
	var t *secondCounts
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
	if from == nil || !m.Sums.Stated {
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
