package statsdsink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/internal/former"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/wire"
)

// sink is a [collector.Sink] that writes StatsD lines.
type sink struct {
	packers  []*packer // one for each address, or one for all with SpreadAll
	homes    rendezvous
	encoding wire.Encoding
	rules    map[string]*sinkRule // by id, including removed rules
	former   former.List
	places   map[string]int // by prefix, for rules that have or had thresholds; see packer.byRule
	line     []byte
}

// sinkRule determines how a rule's counts are written, and which packer gets them.
type sinkRule struct {
	prefix   string
	head     int     // length of a line's name before the key
	home     *packer // packer of all keys; nil if each key has its own
	overlaps bool    // whether the rule has totals
	jumps    bool    // whether the rule has a jump
	place    int     // place of its sums in packer.byRule; -1 if it has no thresholds
}

// sends reports whether a count is sent. Counts that are not a key's are sent only to
// hotparam's own listener, since another server would treat their names as keys.
func (s *sink) sends(r *sinkRule, c *collector.Count) bool {
	return s.Capabilities().Groups || !base.IsAgain(c.Text) && !(r.overlaps && base.IsTotal(c.Text))
}

// New returns a sink that writes StatsD lines. It dials no address: Send does, and dials again after
// errors and, over UDP, periodically. So no receiver need exist yet.
func New(c Config) (collector.Sink, error) {
	if c.Instance == "" {
		c.Instance = collector.DefaultInstance()
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	addrs, names, err := c.parseAddrs()
	if err != nil {
		return nil, err
	}
	c.Addrs = names
	var senders []Sender
	for _, addr := range addrs {
		senders = append(senders, newSocket(addr))
	}
	if c.Sender != nil {
		senders = append(senders, c.Sender)
	}
	return newWithSenders(senders, c), nil
}

// newWithSenders returns a sink that sends through senders, one for each address.
func newWithSenders(senders []Sender, c Config) *sink {
	s := &sink{rules: make(map[string]*sinkRule), places: make(map[string]int), homes: newRendezvous(c.Addrs)}
	if c.Strict {
		s.encoding = wire.Strict
	}
	parts := [][]Sender{senders}
	if c.Spread != SpreadAll {
		parts = slices.Collect(slices.Chunk(senders, 1))
	}
	incarnation := collector.NewIncarnation()
	for _, outs := range parts {
		p := newPacker(c.Instance, incarnation, !c.NoMeta, outs)
		p.soleDestination = len(parts) == 1
		if c.Key != nil {
			p.mac = wire.NewMAC(c.Key)
		}
		s.packers = append(s.packers, p)
	}
	s.SetRules(c.Rules)
	return s
}

// Send implements [collector.Sink]. All addresses get the flush's statements, except Aged,
// which one of them gets, because receivers add it up. With SpreadAll, counts have failed if no
// address accepted them. Err is the error of any address that accepts nothing, even if no
// counts were lost.
func (s *sink) Send(_ context.Context, flush collector.Flush, counts []collector.Count) collector.Sent {
	s.beginFlush(flush)
	var sent collector.Sent
	for i := range counts {
		c := &counts[i]
		r, ok := s.rules[string(c.Rule)]
		if !ok {
			sent.Failed += c.N
			sent.Err = fmt.Errorf("statsd: the sink has no rule %q: it was made with other rules than the guard", c.Rule)
			continue
		}
		if !s.sends(r, c) {
			continue
		}
		s.line = append(s.line[:0], r.prefix...)
		s.line = wire.AppendKey(s.line, s.encoding, c.Text)
		p := s.packerOf(r, s.line[r.head:])
		s.line = wire.AppendCount(s.line, c.N, c.Account)
		p.addCount(s.line, c, r)
	}
	s.sendHeldBack(flush.HeldBack)
	for _, p := range s.packers {
		must := len(counts) == 0 || p.mustHear(&flush)
		p.quiet = !p.hasBegun()
		addSent(&sent, p.endFlush(must))
	}
	return sent
}

// sendHeldBack sends the held-back counts of each group.
func (s *sink) sendHeldBack(groups []collector.HeldBack) {
	for i := range groups {
		g := &groups[i]
		r := s.rules[g.Rule]
		if r == nil || r.home == nil {
			continue // a rule with groups has a share, and so a home for all of its keys
		}
		s.line = wire.AppendHeldBack(s.line[:0], s.encoding, r.prefix, g.Group, g.N)
		r.home.setStart(time.Time{})
		if r.home.addLine(s.line) {
			r.home.head.Sums.HeldBack += uint64(g.N)
		}
	}
}

// SendOrigins implements [collector.Sink]. A key's origins go to the address of its counts.
func (s *sink) SendOrigins(_ context.Context, start time.Time, origins []collector.KeyOrigin) collector.Sent {
	head := &s.packers[0].head
	s.beginFlush(collector.Flush{Start: start, Now: start, Held: max(1, head.Held), Opened: head.Sums.Opened, Shed: head.Sums.Shed})
	for i := range origins {
		o := &origins[i]
		r, ok := s.rules[string(o.Rule)]
		if !ok {
			continue // Send reports the unknown rule
		}
		s.line = s.encoding.Append(s.line[:0], o.Text)
		p := s.packerOf(r, s.line)
		s.line = wire.AppendOrigin(s.line[:0], s.encoding, r.prefix, o.Text, wire.OriginLine{Kind: o.Kind, Name: o.Name, N: o.N})
		p.setStart(time.Time{})
		p.addLine(s.line)
	}
	var sent collector.Sent
	for _, p := range s.packers {
		addSent(&sent, p.endFlush(false))
	}
	return sent
}

func (s *sink) beginFlush(f collector.Flush) {
	for _, p := range s.packers {
		p.beginFlush(f)
		f.Aged = 0
	}
}

// packerOf returns the packer that gets the counts of an encoded key.
func (s *sink) packerOf(r *sinkRule, key []byte) *packer {
	if r.home != nil {
		return r.home
	}
	return s.packers[s.homes.pick(key)]
}

// addSent adds the result of one packer to the sum.
func addSent(sum *collector.Sent, more collector.Sent) {
	sum.Lines += more.Lines
	sum.Packets += more.Packets
	sum.TooLong += more.TooLong
	sum.Failed += more.Failed
	sum.Err = cmp.Or(sum.Err, more.Err)
}

// Capabilities implements [collector.Sink]. With NoMeta, the receivers read counts alone, and the
// sink is patient, since other StatsD servers add up counts for a second or more. Urgent counts
// would be up to 200 packets a second from each instance, and StatsD on Node loses packets beyond
// some tens of thousands a second.
func (s *sink) Capabilities() collector.Capabilities {
	meta := s.packers[0].meta
	return collector.Capabilities{Accounts: meta, Groups: meta && s.encoding != wire.Strict, Origins: meta, Patient: !meta}
}

// Fit implements [collector.Sink].
func (s *sink) Fit(text []byte) []byte { return s.encoding.Fit(text) }

// Close implements [collector.Sink].
func (s *sink) Close() error {
	var errs []error
	for _, p := range s.packers {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}
