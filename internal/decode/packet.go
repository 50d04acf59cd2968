package decode

import (
	"cmp"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
)

// Instances returns the instances whose packets arrived in the last ten seconds, sorted by
// name. It is safe for concurrent use.
func (d *Decoder) Instances(now time.Time) []published.Instance {
	s := d.senders
	s.mu.Lock()
	defer s.mu.Unlock()
	live := make([]published.Instance, 0, len(s.byName))
	for _, known := range s.byName {
		if now.Sub(known.heard) <= liveFor {
			live = append(live, published.Instance{Name: known.name, Heard: known.heard})
		}
	}
	slices.SortFunc(live, func(a, b published.Instance) int { return cmp.Compare(a.Name, b.Name) })
	return live
}

// Advance moves the clock on while no packets arrive, so that bounds on held-back counts
// expire.
func (d *Decoder) Advance(now time.Time, h Handler) {
	d.senders.mu.Lock()
	defer d.senders.mu.Unlock()
	d.senders.advance(now, h)
}

// Dropped records that the system has dropped packets of unknown senders before now. It does
// nothing if all senders report their sums, since the sums will show the loss.
func (d *Decoder) Dropped(now time.Time, h Handler) {
	if last := d.senders.plain.Load(); last == 0 || now.Sub(time.Unix(0, last)) > senderLife {
		return
	}
	d.senders.mu.Lock()
	defer d.senders.mu.Unlock()
	l := &d.senders.losses
	l.settled = base.Later(l.settled, now)
	l.report(h)
}

// Packet decodes one packet that arrived now. Its counts get the time of its meta line,
// corrected by the sender's clock offset and never later than now. Without a meta line they get
// now. A meta line alone is a heartbeat.
func (d *Decoder) Packet(packet []byte, now time.Time, h Handler) {
	d.stats.Packets.Add(1)
	if !d.authentic(packet) {
		return
	}
	d.now = now
	common := Count{When: now}
	line, tail := cutLine(packet)
	if !wire.IsMeta(line) {
		d.senders.recordPlain(now)
		d.decodeLines(packet, common, nil, nil, h)
		return
	}
	m, err := wire.ParseMeta(line)
	if err == nil && !d.fresh(&m, now) {
		return
	}
	if err != nil && d.mac != nil { // it may be a replay
		d.stats.Malformed.Add(1)
	} else if err != nil {
		d.stats.Malformed.Add(1)
		d.senders.recordPlain(now)
		d.decodeLines(tail, common, nil, nil, h)
	} else if from, ok := d.readMeta(&m, now, true, &common, h); ok {
		d.decodeLines(tail, common, &m, from, h)
	}
}

// Record decodes lines whose meta line is stored apart from them, as in the headers of a Kafka
// record. A nil m means that they have none. now is the time when a broker took the record, and
// stamped reports whether the broker set it. If it did not, the record may have waited, so
// clock offsets are reported but not corrected. Otherwise Record is like Packet. It returns the
// time of the counts, and ok=false for a record that was decoded before.
func (d *Decoder) Record(m *wire.Meta, lines []byte, now time.Time, stamped bool, h Handler) (when time.Time, ok bool) {
	d.stats.Packets.Add(1)
	d.now = now
	common := Count{When: now}
	var from *sender
	if m != nil {
		if from, ok = d.readMeta(m, now, stamped, &common, h); !ok {
			return common.When, false
		}
	}
	d.decodeLines(lines, common, m, from, h)
	return common.When, true
}

// readMeta records the meta line of a packet, and sets the sender and the time of c. It returns
// ok=false for a packet that was seen before or is refused, and a nil sender if there are too
// many. stamped reports whether now is the arrival time of the packet by one clock for all
// senders.
func (d *Decoder) readMeta(m *wire.Meta, now time.Time, stamped bool, c *Count, h Handler) (_ *sender, ok bool) {
	if limit := d.senders.mostClaimed; limit > 0 && uint64(max(m.Unsent, m.Held)) > limit {
		d.refuse(RefusedCounts, d.source(), "")
		return nil, false
	}
	crowded := false
	defer func() {
		if crowded { // after the lock was released
			d.refuse(RefusedNames, d.source(), "")
		}
	}()
	d.senders.mu.Lock()
	defer d.senders.mu.Unlock()
	s, changed := d.senders.senderFor(m, now, d.source), true
	if s == nil && d.senders.names != nil {
		crowded = true
		return nil, false
	}
	start := time.Unix(0, m.Start)
	if s != nil {
		start = d.senders.startTime(s, m, now, stamped)
	}
	if start.Before(now) {
		c.When = start
	}
	if s == nil { // there are too many senders to follow
		if m.Held > 1 {
			d.senders.losses.settled = now
		}
	} else {
		s.doubt = min(s.doubt, now.Sub(c.When)) // no count is later than now
		c.Instance, c.Skew = s.name, min(s.skew, now.Sub(c.When))
		noticed := now
		if !stamped && s.incarnation != m.Incarnation {
			noticed = c.When // a record may be read long after, and its missing predecessors are no newer than it
		}
		lost, duplicate := s.recordPacket(m, noticed, &d.senders.losses)
		if duplicate {
			d.stats.Duplicates.Add(1)
			return nil, false
		}
		if s.accounts.resumed {
			lost = 0 // lost by a restart, not in transit
		}
		// The loss is dated now: the time of the packets that arrived says nothing about those
		// that did not.
		d.stats.LostPackets.Add(max(0, lost))
		d.stats.Recovered.Add(max(0, -lost))
		d.senders.held.recordHeld(s, m.Held, m.Groups != d.senders.groups || !m.Sums.Stated, now)
		s.lateness.recordAge(now.Sub(c.When), now)
		changed = lost != 0 || m.Seq <= s.first // more may be known now about the packets before the first one
		if m.Sums.Stated {
			d.senders.recordSums(s, m, c.When, h)
			c.InGroup = d.senders.inGroup(s, m)
		} else {
			d.senders.recordPlain(now)
		}
	}
	if changed {
		d.senders.losses.report(h)
	}
	d.senders.advance(now, h)
	d.stats.Aged.Add(m.Aged)
	// The bound keeps a false claim from an overflow.
	if unsent := min(m.Unsent, wire.MaxCount); unsent > 0 {
		h.AddHiddenCounts(c.When, unsent)
		if s != nil && s.doubt > 0 {
			h.AddHiddenCounts(c.When.Add(s.doubt), unsent)
		}
	}
	return s, true
}
