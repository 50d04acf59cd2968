package statsdsink

import (
	"cmp"
	"errors"
	"time"

	"github.com/cactus/go-statsd-client/v5/statsd"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/wire"
)

// packer joins lines to packets, each with a meta line at its head, for the
// receivers that get the same. It is its client's sender; what is sent when is
// up to us.
type packer struct {
	client *statsd.Client // formats lines
	outs   []statsd.Sender
	errs   []error // what became of each out's last packet
	meta   bool
	mac    *wire.MAC // nil: packets are not signed
	only   bool      // there is no other packer
	head   wire.Meta
	sums   wire.Sums       // of all lines so far
	byRule []uint64        // the loose and the booked ones of each rule with thresholds; nil: not told
	mark   uint32          // of these rules
	before int64           // the start of the flush of the packet before
	told   collector.Flush // what is to be told of the flush
	quiet  bool            // the last flush had no counts
	last   time.Time       // the start of the last flush that sent a packet,
	heard  int64           // and its h

	buf   []byte
	first int             // length of its meta line
	open  bool            // buf is a packet that has begun
	lines int64           // in buf
	mass  int64           // of the lines in buf
	count collector.Count // of the line to come
	held  int64           // what that line tells as held back
	rule  int             // its rule, among those with thresholds; -1: it counts for none
	ruled bool            // buf begins with the rules' sums, which are told once a flush
	sent  collector.Sent
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

func (p *packer) begin(f collector.Flush) {
	p.sent, p.told, p.ruled = collector.Sent{}, f, false
	p.head.Sent = f.SendTime(p.mac != nil)
	p.head.Sums.Opened, p.head.Sums.Shed = f.Opened, f.Shed
	p.head.Start, p.head.Held = f.Start.UnixNano(), f.Held
}

// next prepares for the line of a count: one with another start needs a packet
// of its own.
func (p *packer) next(c *collector.Count) {
	p.count, p.held, p.rule = *c, 0, -1
	start := c.Start
	if start.IsZero() {
		start = p.told.Start
	}
	if ns := start.UnixNano(); p.meta && ns != p.head.Start {
		if p.open {
			p.emit()
		}
		p.head.Start = ns
	}
}

// Send takes one line from the client.
func (p *packer) Send(line []byte) (int, error) {
	if p.open && (p.lines > 0 || p.ruled) && len(p.buf)+1+len(line) > wire.MaxPacket {
		p.emit()
	}
	p.start()
	if len(p.buf)+1+len(line) > wire.MaxPacket {
		p.sent.TooLong += p.count.N
		return 0, nil
	}
	if len(p.buf) > 0 {
		p.buf = append(p.buf, '\n')
	}
	p.buf = append(p.buf, line...)
	p.lines++
	p.mass += p.count.N
	p.sums.HeldBack += uint64(p.held)
	if p.count.Account.Number != 0 {
		p.sums.Booked += uint64(p.count.N)
		p.countByRule(1)
		if !p.count.Start.IsZero() {
			p.sums.Parts++
		}
	} else {
		p.sums.Loose += uint64(p.count.N)
		p.countByRule(0)
	}
	return len(line), nil
}

func (p *packer) countByRule(booked int) {
	if p.rule >= 0 && p.byRule != nil {
		p.byRule[2*p.rule+booked] += uint64(p.count.N)
	}
}

// start begins a packet unless one has begun.
func (p *packer) start() {
	if p.open {
		return
	}
	p.open, p.buf, p.lines, p.mass = true, p.buf[:0], 0, 0
	if p.meta {
		p.head.Seq++
		p.head.Unsent, p.head.Aged = 0, 0
		if p.head.Start == p.told.Start.UnixNano() { // what was dropped was so lately
			p.head.Unsent, p.head.Aged = p.told.Unsent, p.told.Aged
			p.told.Unsent, p.told.Aged = 0, 0 // told once
		}
		p.head.Sums.Booked, p.head.Sums.Loose, p.head.Sums.Parts = p.sums.Booked, p.sums.Loose, p.sums.Parts
		p.head.Sums.HeldBack = p.sums.HeldBack
		if p.head.Sums.Since = 0; p.head.Seq > 1 {
			p.head.Sums.Since = p.told.Start.UnixNano() - p.before
		}
		p.before = p.told.Start.UnixNano()
		p.head.Sums.Age = p.before - p.head.Start
		p.head.Rules = p.head.Rules[:0]
		if p.ruled = p.byRule != nil && p.sent.Packets == 0; p.ruled {
			p.head.Rules = wire.AppendRuleSums(p.head.Rules, p.mark, p.byRule)
		}
		p.buf = wire.AppendMeta(p.buf, p.head)
		if p.mac != nil {
			p.buf = wire.AppendMACField(p.buf)
		}
		p.first = len(p.buf)
	}
}

// emit sends the packet that has begun. Its counts have failed if nobody took it.
func (p *packer) emit() {
	p.open = false
	if len(p.buf) == 0 { // a flush that has nothing to say; but the next may have
		p.connect()
		return
	}
	if p.mac != nil {
		p.mac.Sign(p.buf, p.first)
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

// connect sees to it that the outs are ready, where nothing else does.
func (p *packer) connect() {
	for i, out := range p.outs {
		if s, ok := out.(*socket); ok {
			p.errs[i] = s.connect()
		}
	}
}

// due tells whether the receivers must hear of a flush that has no counts for
// them, but for others: of another h; after counts, which are known to be lost
// when the next number comes; and once a second.
func (p *packer) due(f *collector.Flush) bool {
	return p.only || f.Held != p.heard || !p.quiet || f.Start.Add(hotparam.FlushEvery).Sub(p.last) > collector.BeatEvery
}

// begun tells whether something of the flush has been packed.
func (p *packer) begun() bool { return p.open || p.sent.Packets > 0 }

// end sends what is left, and a packet of a meta line alone where there is
// something to tell that no other told, or the receivers must hear of the flush
// and there was no other.
func (p *packer) end(must bool) collector.Sent {
	if p.told.Unsent > 0 || p.told.Aged > 0 || must && !p.begun() {
		p.next(&collector.Count{})
		p.start()
	}
	if p.open {
		p.emit()
	}
	if p.sent.Packets > 0 {
		p.last, p.heard = p.told.Start, p.told.Held
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
