package statsdsink

import (
	"cmp"
	"errors"
	"time"

	"github.com/cactus/go-statsd-client/v5/statsd"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/pace"
	"github.com/hotparam/hotparam/wire"
)

// packer joins lines to packets, each with a meta line at its head, for the receivers
// that get the same. It is its client's sender, and decides when a packet is sent.
type packer struct {
	client          *statsd.Client // formats lines
	outs            []statsd.Sender
	errs            []error // what became of each out's last packet
	meta            bool
	mac             *wire.MAC // nil if packets are not signed
	soleDestination bool      // no other packer has other receivers
	head            wire.Meta
	sums            wire.Sums       // of all lines so far
	byRule          []uint64        // the loose and the booked ones of each rule with thresholds, or nil
	mark            uint32          // of these rules
	before          int64           // the start of the flush of the packet before
	flush           collector.Flush // what its packets state
	quiet           bool            // the last flush had no counts
	last            time.Time       // the start of the last flush that sent a packet,
	lastHeld        int64           // and its h

	buf          []byte
	metaLen      int             // length of its meta line
	open         bool            // buf is a packet that has begun
	lines        int64           // in buf
	mass         int64           // of the lines in buf
	line         collector.Count // of the line to come
	lineHeldBack int64           // what that line says is held back
	lineRule     int             // its rule, among those with thresholds; -1 if it counts for none
	ruled        bool            // buf begins with the rules' sums, which are stated once a flush
	sent         collector.Sent
}

func newPacker(instance string, incarnation uint64, meta bool, outs ...statsd.Sender) (*packer, error) {
	p := &packer{outs: outs, errs: make([]error, len(outs)), meta: meta, buf: make([]byte, 0, wire.MaxPacket)}
	p.head.Instance, p.head.Incarnation = []byte(instance), incarnation
	p.head.Sums.Told = true
	client, err := statsd.NewClientWithSender(p, "", 0)
	if err != nil {
		return nil, err
	}
	p.client = client.(*statsd.Client)
	p.client.SetSamplerFunc(func(float32) bool { return true }) // every line counts
	return p, nil
}

func (p *packer) beginFlush(f collector.Flush) {
	p.sent, p.flush, p.ruled = collector.Sent{}, f, false
	p.head.Sent = f.SendTime(p.mac != nil)
	p.head.Sums.Opened, p.head.Sums.Shed = f.Opened, f.Shed
	p.head.Start, p.head.Held = f.Start.UnixNano(), f.Held
}

// prepareLine prepares for the line of a count: one with another start needs a packet
// of its own.
func (p *packer) prepareLine(c *collector.Count) {
	p.line, p.lineHeldBack, p.lineRule = *c, 0, -1
	start := c.Start
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

// Send takes one line from the client.
func (p *packer) Send(line []byte) (int, error) {
	if p.open && (p.lines > 0 || p.ruled) && len(p.buf)+1+len(line) > wire.MaxPacket {
		p.sendPacket()
	}
	p.openPacket()
	if len(p.buf)+1+len(line) > wire.MaxPacket {
		p.sent.TooLong += p.line.N
		return 0, nil
	}
	if len(p.buf) > 0 {
		p.buf = append(p.buf, '\n')
	}
	p.buf = append(p.buf, line...)
	p.lines++
	p.mass += p.line.N
	p.sums.HeldBack += uint64(p.lineHeldBack)
	if p.line.Account.Number != 0 {
		p.sums.Booked += uint64(p.line.N)
		p.countByRule(1)
		if !p.line.Start.IsZero() {
			p.sums.Parts++
		}
	} else {
		p.sums.Loose += uint64(p.line.N)
		p.countByRule(0)
	}
	return len(line), nil
}

func (p *packer) countByRule(booked int) {
	if p.lineRule >= 0 && p.byRule != nil {
		p.byRule[2*p.lineRule+booked] += uint64(p.line.N)
	}
}

// openPacket begins a packet unless one has begun.
func (p *packer) openPacket() {
	if p.open {
		return
	}
	p.open, p.buf, p.lines, p.mass = true, p.buf[:0], 0, 0
	if p.meta {
		p.head.Seq++
		p.head.Unsent, p.head.Aged = 0, 0
		if p.head.Start == p.flush.Start.UnixNano() { // what was dropped was so lately
			p.head.Unsent, p.head.Aged = p.flush.Unsent, p.flush.Aged
			p.flush.Unsent, p.flush.Aged = 0, 0 // stated once
		}
		p.head.Sums.Booked, p.head.Sums.Loose, p.head.Sums.Parts = p.sums.Booked, p.sums.Loose, p.sums.Parts
		p.head.Sums.HeldBack = p.sums.HeldBack
		if p.head.Sums.Since = 0; p.head.Seq > 1 {
			p.head.Sums.Since = p.flush.Start.UnixNano() - p.before
		}
		p.before = p.flush.Start.UnixNano()
		p.head.Sums.Age = p.before - p.head.Start
		p.head.Rules = p.head.Rules[:0]
		if p.ruled = p.byRule != nil && p.sent.Packets == 0; p.ruled {
			p.head.Rules = wire.AppendRuleSums(p.head.Rules, p.mark, p.byRule)
		}
		p.buf = wire.AppendMeta(p.buf, p.head)
		if p.mac != nil {
			p.buf = wire.AppendMACField(p.buf)
		}
		p.metaLen = len(p.buf)
	}
}

// sendPacket sends the packet that has begun. Its counts have failed if no receiver
// took it.
func (p *packer) sendPacket() {
	p.open = false
	if len(p.buf) == 0 { // a flush that has nothing to say; but the next may have
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
		p.sent.Failed += p.mass
	}
}

// connectOuts has the sockets connect, which they else do when they send.
func (p *packer) connectOuts() {
	for i, out := range p.outs {
		if s, ok := out.(*socket); ok {
			p.errs[i] = s.connect()
		}
	}
}

// mustHear reports whether the receivers must get a packet of a flush that has no counts
// for them, but for others: if h is another; after counts, whose loss they notice by the
// next number; and once a second.
func (p *packer) mustHear(f *collector.Flush) bool {
	return p.soleDestination || f.Held != p.lastHeld || !p.quiet || f.Start.Add(pace.Flush).Sub(p.last) > collector.BeatEvery
}

// hasBegun reports whether something of the flush has been packed.
func (p *packer) hasBegun() bool { return p.open || p.sent.Packets > 0 }

// endFlush sends what is left, and a packet of a meta line alone if there is something to
// state that no other packet stated, or must is set and there was no other.
func (p *packer) endFlush(must bool) collector.Sent {
	if p.flush.Unsent > 0 || p.flush.Aged > 0 || must && !p.hasBegun() {
		p.prepareLine(&collector.Count{})
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

// Close closes what is below.
func (p *packer) Close() error {
	var errs []error
	for _, out := range p.outs {
		errs = append(errs, out.Close())
	}
	return errors.Join(errs...)
}
