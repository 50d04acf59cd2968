package statsdsink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"github.com/cactus/go-statsd-client/v5/statsd"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/internal/former"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/wire"
)

// Sink is a [collector.Sink] that writes StatsD lines.
type Sink struct {
	packers  []*packer // one for each address, or one for all with SpreadAll
	homes    rendezvous
	encoding wire.Encoding
	rules    map[string]*sinkRule // by id, including removed rules
	former   former.List
	places   map[string]int // by prefix, for rules that have or had thresholds; see packer.byRule
	name     []byte
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
func (s *Sink) sends(r *sinkRule, c *collector.Count) bool {
	return s.packers[0].meta && s.encoding != wire.Strict || !base.IsAgain(c.Text) && !(r.overlaps && base.IsTotal(c.Text))
}

// New returns a sink. It dials no address: Send does, and dials again after errors and, over
// UDP, periodically. So no receiver need exist yet.
func New(c Config) (*Sink, error) {
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
	var senders []statsd.Sender
	for _, addr := range addrs {
		senders = append(senders, newSocket(addr))
	}
	if c.Sender != nil {
		senders = append(senders, c.Sender)
	}
	return newWithSenders(senders, c)
}

// newWithSenders returns a sink that sends through senders, one for each address.
func newWithSenders(senders []statsd.Sender, c Config) (*Sink, error) {
	s := &Sink{rules: make(map[string]*sinkRule), places: make(map[string]int), homes: newRendezvous(c.Addrs)}
	if c.Strict {
		s.encoding = wire.Strict
	}
	parts := [][]statsd.Sender{senders}
	if c.Spread == SpreadHash {
		parts = slices.Collect(slices.Chunk(senders, 1))
	}
	incarnation := collector.NewIncarnation()
	for _, outs := range parts {
		p, err := newPacker(c.Instance, incarnation, !c.NoMeta, outs...)
		if err != nil {
			return nil, fmt.Errorf("statsdsink: client: %w", err)
		}
		p.soleDestination = len(parts) == 1
		if c.Key != nil {
			p.mac = wire.NewMAC(c.Key)
		}
		s.packers = append(s.packers, p)
	}
	s.SetRules(c.Rules)
	return s, nil
}

// Send implements [collector.Sink]. All addresses get the flush's statements, except Aged,
// which one of them gets, because receivers add it up. With SpreadAll, counts have failed if no
// address accepted them. Err is the error of any address that accepts nothing, even if no
// counts were lost.
func (s *Sink) Send(_ context.Context, flush collector.Flush, counts []collector.Count) collector.Sent {
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
		s.name = append(s.name[:0], r.prefix...)
		s.name = wire.AppendKey(s.name, s.encoding, c.Text)
		p := s.packerOf(r, s.name[r.head:])
		p.prepareLine(c)
		p.lineRule, p.lineJumps = r.place, r.jumps
		if c.Account.Number != 0 {
			s.name = strconv.AppendInt(append(s.name, ':'), c.N, 10)
			_, _ = p.Send(wire.AppendAccount(append(s.name, "|c"...), c.Account)) // endFlush returns the errors
			continue
		}
		// The client formats the line and passes it to the packer before it returns, so
		// the name need not be copied.
		_ = p.client.Inc(unsafe.String(&s.name[0], len(s.name)), c.N, 1)
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
func (s *Sink) sendHeldBack(groups []collector.HeldBack) {
	for i := range groups {
		g := &groups[i]
		r := s.rules[g.Rule]
		if r == nil || r.home == nil {
			continue // a rule with groups has a share, and so a home for all of its keys
		}
		r.home.prepareLine(&collector.Count{})
		r.home.lineHeldBack = g.N
		s.name = wire.AppendHeldBack(s.name[:0], s.encoding, r.prefix, g.Group, g.N)
		_, _ = r.home.Send(s.name) // endFlush returns the errors
	}
}

// SendOrigins implements [collector.OriginSink]. A key's origins go to the address of its
// counts. With NoMeta, none are sent.
func (s *Sink) SendOrigins(_ context.Context, start time.Time, origins []collector.KeyOrigin) collector.Sent {
	var sent collector.Sent
	if !s.packers[0].meta {
		return sent
	}
	head := &s.packers[0].head
	s.beginFlush(collector.Flush{Start: start, Now: start, Held: max(1, head.Held), Opened: head.Sums.Opened, Shed: head.Sums.Shed})
	for i := range origins {
		o := &origins[i]
		r, ok := s.rules[string(o.Rule)]
		if !ok {
			continue // Send reports the unknown rule
		}
		s.name = s.encoding.Append(s.name[:0], o.Text)
		p := s.packerOf(r, s.name)
		s.name = wire.AppendOrigin(s.name[:0], s.encoding, r.prefix, o.Text, wire.OriginLine{Kind: o.Kind, Name: o.Name, N: o.N})
		p.prepareLine(&collector.Count{})
		_, _ = p.Send(s.name) // endFlush returns the errors
	}
	for _, p := range s.packers {
		addSent(&sent, p.endFlush(false))
	}
	return sent
}

func (s *Sink) beginFlush(f collector.Flush) {
	for _, p := range s.packers {
		p.beginFlush(f)
		f.Aged = 0
	}
}

// packerOf returns the packer that gets the counts of an encoded key.
func (s *Sink) packerOf(r *sinkRule, key []byte) *packer {
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

// Patient implements [collector.PatientSink]. With NoMeta the sink is patient, since other
// StatsD servers add up counts for a second or more. Urgent counts would be up to 200 packets a
// second from each instance, and StatsD on Node loses packets beyond some tens of thousands a
// second.
func (s *Sink) Patient() bool { return !s.packers[0].meta }

// Accounts implements [collector.AccountSink]. Other StatsD servers cannot read accounts.
func (s *Sink) Accounts() bool { return s.packers[0].meta }

// Groups implements [collector.GroupSink].
func (s *Sink) Groups() bool { return s.packers[0].meta && s.encoding != wire.Strict }

// Fit implements [collector.Sink].
func (s *Sink) Fit(text []byte) []byte { return s.encoding.Fit(text) }

// Close implements [collector.Sink].
func (s *Sink) Close() error {
	var errs []error
	for _, p := range s.packers {
		errs = append(errs, p.client.Close())
	}
	return errors.Join(errs...)
}
