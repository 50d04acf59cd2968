package statsdsink

import (
	"cmp"
	"errors"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/wire"
)

// packer joins lines to packets, each with a meta line at its head, and sends each packet to all
// of its receivers.
type packer struct {
	outs            []Sender
	errs            []error // error of each out's last packet
	meta            bool
	mac             *wire.MAC // nil if packets are not signed
	soleDestination bool      // whether there is no other packer
	head            wire.Meta // of the next packet; its Sums are those of all lines so far
	byRule          []uint64  // loose and booked sums of each rule that has or had thresholds, by place
	places          []int     // places of the rules whose sums are stated, in order
	stated          []uint64  // buffer for the stated sums
	mark            uint32    // identifies these rules; 0 if no sums are stated
	buckets         bucketSums
	before          int64           // start of the last packet's flush
	flush           collector.Flush // the flush that the packets state
	quiet           bool            // whether the last flush had no counts
	last            time.Time       // start of the last flush that sent a packet
	lastHeld        int64           // Held of that flush

	buf     []byte
	metaLen int            // length of the meta line in buf
	open    bool           // whether buf is a packet that has begun
	lines   int64          // number of lines in buf
	sum     int64          // sum of the counts in buf
	summed  bool           // whether buf begins with sums by rule or by bucket, which are stated once a flush
	sent    collector.Sent // result of the flush so far
}

func newPacker(instance string, incarnation uint64, meta bool, outs []Sender) *packer {
	p := &packer{outs: outs, errs: make([]error, len(outs)), meta: meta, buf: make([]byte, 0, wire.MaxPacket)}
	p.head.Instance, p.head.Incarnation = []byte(instance), incarnation
	p.head.Sums.Stated = true
	return p
}

func (p *packer) beginFlush(f collector.Flush) {
	p.sent, p.flush, p.summed = collector.Sent{}, f, false
	p.head.Sent = f.SendTime(p.mac != nil)
	p.head.Sums.Opened, p.head.Sums.Shed = f.Opened, f.Shed
	p.head.Start, p.head.Held = f.Start.UnixNano(), f.Held
}

// setStart sets the start of the next line's counts. A zero start means the flush's. Lines with
// another start need their own packet.
func (p *packer) setStart(start time.Time) {
	if start.IsZero() {
		start = p.flush.Start
	}
	if ns := start.UnixNano(); p.meta && ns != p.head.Start {
		if p.open {
			p.sendPacket()
		}
		p.head.Start = ns
	}
}

// addCount adds the line of a rule's count.
func (p *packer) addCount(line []byte, c *collector.Count, r *sinkRule) {
	p.setStart(c.Start)
	if !p.addLine(line) {
		p.sent.TooLong += c.N
		return
	}
	p.sum += c.N
	n, sums, place := uint64(c.N), &p.head.Sums, 2*r.place
	if c.Account.Number != 0 {
		sums.Booked += n
		place++
		if !c.Start.IsZero() {
			sums.Parts++
		}
	} else {
		sums.Loose += n
		if r.jumps {
			p.buckets.add(c, p.head.Incarnation)
		}
	}
	if 0 <= place && place < len(p.byRule) {
		p.byRule[place] += n
	}
}

// addLine adds a line to the packet, and reports whether it fits.
func (p *packer) addLine(line []byte) (fits bool) {
	if p.open && (p.lines > 0 || p.summed) && len(p.buf)+1+len(line) > wire.MaxPacket {
		p.sendPacket()
	}
	p.openPacket()
	if p.summed && len(p.buf)+1+len(line) > wire.MaxPacket { // the sums go ahead in a separate packet
		p.sendPacket()
		p.openPacket()
	}
	if len(p.buf)+1+len(line) > wire.MaxPacket {
		return false
	}
	if len(p.buf) > 0 {
		p.buf = append(p.buf, '\n')
	}
	p.buf = append(p.buf, line...)
	p.lines++
	return true
}

// openPacket begins a packet unless one has begun.
func (p *packer) openPacket() {
	if p.open {
		return
	}
	p.open, p.buf, p.lines, p.sum = true, p.buf[:0], 0, 0
	if p.meta {
		p.head.Seq++
		p.head.Unsent, p.head.Aged = 0, 0
		if p.head.Start == p.flush.Start.UnixNano() { // drops are counted since the last flush
			p.head.Unsent, p.head.Aged = p.flush.Unsent, p.flush.Aged
			p.flush.Unsent, p.flush.Aged = 0, 0 // since they are stated once
		}
		if p.head.Sums.Since = 0; p.head.Seq > 1 {
			p.head.Sums.Since = p.flush.Start.UnixNano() - p.before
		}
		p.before = p.flush.Start.UnixNano()
		p.head.Sums.Age = p.before - p.head.Start
		p.head.Rules = p.head.Rules[:0]
		ruled := p.meta && p.mark != 0 && p.sent.Packets == 0
		if ruled {
			p.head.Rules = p.appendRuleSums(p.head.Rules)
		}
		var states bool
		p.head.Buckets, states = p.buckets.append(p.head.Buckets[:0], p.flush.Start)
		p.summed = ruled || states
		p.buf = wire.AppendMeta(p.buf, p.head)
		if p.mac != nil {
			p.buf = wire.AppendMACField(p.buf)
		}
		p.metaLen = len(p.buf)
	}
}

// sendPacket sends the packet that has begun. If no receiver accepts it, its counts have
// failed.
func (p *packer) sendPacket() {
	p.open = false
	if len(p.buf) == 0 { // nothing to send yet
		p.connectOuts()
		return
	}
	if p.mac != nil {
		p.mac.Sign(p.buf, p.metaLen)
	}
	taken := false
	for i, out := range p.outs {
		p.sent.Packets++
		if _, p.errs[i] = out.Send(p.buf); p.errs[i] == nil {
			taken = true
		} else {
			p.sent.Err = p.errs[i]
		}
	}
	if taken {
		p.sent.Lines += p.lines
	} else {
		p.sent.Failed += p.sum
	}
}

// connectOuts makes the sockets connect before their first packet.
func (p *packer) connectOuts() {
	for i, out := range p.outs {
		if s, ok := out.(*socket); ok {
			p.errs[i] = s.connect()
		}
	}
}

// mustHear reports whether the receivers must get a packet of a flush in which only others have
// counts. They must if Held has changed, once a second, and after counts, whose loss shows by
// the next packet's number.
func (p *packer) mustHear(f *collector.Flush) bool {
	return p.soleDestination || f.Held != p.lastHeld || !p.quiet || f.Start.Add(base.FlushInterval).Sub(p.last) > collector.BeatEvery
}

// hasBegun reports whether the flush already has a packet.
func (p *packer) hasBegun() bool { return p.open || p.sent.Packets > 0 }

// endFlush sends the last packet and returns the result of the flush. It sends a packet with
// only a meta line if the flush has drops that no packet has stated, or if must is set and
// there was no packet.
func (p *packer) endFlush(must bool) collector.Sent {
	if p.flush.Unsent > 0 || p.flush.Aged > 0 || must && !p.hasBegun() {
		p.setStart(time.Time{})
		p.openPacket()
	}
	if p.open {
		p.sendPacket()
	}
	if p.sent.Packets > 0 {
		p.last, p.lastHeld = p.flush.Start, p.flush.Held
	}
	p.sent.Err = cmp.Or(p.sent.Err, cmp.Or(p.errs...))
	return p.sent
}

// Close closes the senders.
func (p *packer) Close() error {
	var errs []error
	for _, out := range p.outs {
		errs = append(errs, out.Close())
	}
	return errors.Join(errs...)
}
