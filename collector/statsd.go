package collector

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/cactus/go-statsd-client/v5/statsd"
	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/wire"
)

// StatsDConfig is what a StatsD sink needs. Rules and one of Addrs and Sender
// are required.
type StatsDConfig struct {
	// Rules give each rule's prefix and the namespace.
	Rules *hotparam.Rules
	// Addrs are the addresses of the aggregators, or of any StatsD, as
	// [wire.ParseAddress] reads them: UDP, TCP or a Unix socket, of datagrams or a
	// stream; mostly one. Each has a socket of its own: one that cannot be reached,
	// or takes nothing, neither holds up the others nor makes them fail. But for
	// UDP an aggregator that is slow holds up its senders, by a fifth of the time at
	// most: they add up more before they send. Beyond that counts fail, and are told.
	Addrs []string
	// Spread is which of several addresses a key's counts go to.
	Spread Spread
	// Sender takes whole packets instead of sockets.
	Sender statsd.Sender
	// Encoding is how keys are written; the receiver must be set the same.
	Encoding wire.Encoding
	// NoMeta is for a StatsD that is not ours: there are no meta lines and no
	// origins, and nothing is sent where there are no counts. Such a StatsD counts
	// what it is sent when it comes. It is not told what was lost or dropped, nor
	// what is held back while more keys come than the collector's budget has lines:
	// that counts when it comes, later by up to the longest window, so that a
	// window's count of a key may be too high, by less than the quarter of a
	// threshold that makes a candidate. [Collector.Stats] tells all of it here.
	NoMeta bool
	// Instance names this process among the senders; empty: host name and
	// process id.
	Instance string
	// Key signs each packet, for an aggregator that believes nothing else; it has
	// [wire.MinKey] bytes at least. Nil: packets are not signed. A StatsD in between
	// makes packets of its own, which it cannot sign.
	Key []byte
}

func (c *StatsDConfig) validate() error {
	switch {
	case c.Rules == nil:
		return errors.New("collector: StatsDConfig.Rules is missing")
	case (len(c.Addrs) == 0) == (c.Sender == nil):
		return errors.New("collector: StatsDConfig needs either Addrs or Sender")
	case c.Spread != SpreadHash && c.Spread != SpreadAll:
		return fmt.Errorf("collector: StatsDConfig.Spread is %v: want SpreadHash or SpreadAll", c.Spread)
	case c.Key != nil && len(c.Key) < wire.MinKey:
		return fmt.Errorf("collector: StatsDConfig.Key has %d bytes: want %d at least", len(c.Key), wire.MinKey)
	case c.Key != nil && c.NoMeta:
		return errors.New("collector: StatsDConfig.Key signs meta lines, and NoMeta leaves them out")
	case !wire.ValidInstance(c.Instance):
		return fmt.Errorf("collector: StatsDConfig.Instance %q: want 1 to %d of A-Z a-z 0-9 _ . -", c.Instance, wire.MaxInstance)
	}
	return nil
}

// addresses parses Addrs, and spells each in one way: what a key's address is
// chosen by must not depend on how somebody wrote it.
func (c *StatsDConfig) addresses() (addrs []wire.Address, names []string, err error) {
	for _, text := range c.Addrs {
		addr, err := wire.ParseAddress(text)
		if err != nil {
			return nil, nil, fmt.Errorf("collector: StatsD %w", err)
		}
		name := addr.String()
		if slices.Contains(names, name) {
			return nil, nil, fmt.Errorf("collector: StatsD address %q is given twice", text)
		}
		addrs, names = append(addrs, addr), append(names, name)
	}
	return addrs, names, nil
}

// StatsD is a [Sink] that writes StatsD lines.
type StatsD struct {
	packers  []*packer // one for each address; one for all of them with SpreadAll
	homes    rendezvous
	encoding wire.Encoding
	rules    map[string]*statsdRule // by id
	name     []byte
}

// statsdRule is how a rule's counts are written, and where they go.
type statsdRule struct {
	prefix string
	head   int     // length of what comes before the key in a line's name
	home   *packer // of all keys; nil: each key has its own
	// overlaps: the rule has totals.
	overlaps bool
	number   int // among those with thresholds, -1: none
}

// takes reports whether a count is sent: it is of a key, or our own listener reads the
// lines. Another would make a series of what is no key's.
func (s *StatsD) takes(r *statsdRule, c *Count) bool {
	return s.packers[0].meta && s.encoding != wire.Strict || !hotparam.IsAgain(c.Text) && !(r.overlaps && hotparam.IsTotal(c.Text))
}

// NewStatsD makes the sink. Addresses are dialled at the first send, and again after
// errors and, over UDP, from time to time, so they need not exist yet.
func NewStatsD(c StatsDConfig) (*StatsD, error) {
	if c.Instance == "" {
		c.Instance = DefaultInstance()
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	addrs, names, err := c.addresses()
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
	return newStatsDTo(senders, c)
}

// newStatsDTo makes the sink with these senders, one for each address.
func newStatsDTo(senders []statsd.Sender, c StatsDConfig) (*StatsD, error) {
	s := &StatsD{encoding: c.Encoding, rules: make(map[string]*statsdRule), homes: newRendezvous(c.Addrs)}
	parts := [][]statsd.Sender{senders}
	if c.Spread == SpreadHash {
		parts = slices.Collect(slices.Chunk(senders, 1))
	}
	life := NewIncarnation()
	for _, outs := range parts {
		p, err := newPacker(c.Instance, life, !c.NoMeta, outs...)
		if err != nil {
			return nil, fmt.Errorf("collector: StatsD client: %w", err)
		}
		p.only = len(parts) == 1
		if c.Key != nil {
			p.mac = wire.NewMAC(c.Key)
		}
		s.packers = append(s.packers, p)
	}
	ruled := 0
	for i := range c.Rules.Rules {
		rule := &c.Rules.Rules[i]
		prefix := rule.CountPrefix(c.Rules.Namespace)
		r := &statsdRule{overlaps: rule.Overlaps(), number: -1, prefix: prefix, head: len(wire.AppendKey([]byte(prefix), c.Encoding, nil))}
		switch {
		case len(parts) == 1:
			r.home = s.packers[0]
		case rule.Whole():
			r.home = s.packers[s.homes.pick([]byte(prefix))]
		}
		if len(rule.Hot) > 0 {
			r.number = ruled
			ruled++
		}
		s.rules[rule.ID] = r
	}
	s.agree(c.Rules, ruled)
	return s, nil
}

// agree has packets tell for which rules something is told; ruled is how many have
// thresholds.
func (s *StatsD) agree(rules *hotparam.Rules, ruled int) {
	for _, p := range s.packers {
		if s.Groups() {
			p.head.Groups = wire.GroupsMark(rules)
		}
		if p.mark = wire.RulesMark(rules); p.meta && p.mark != 0 {
			p.byRule = make([]uint64, 2*ruled)
		}
	}
}

// Send implements [Sink]. With several addresses what is told of the flush is
// told to all of them, but Aged, which is a sum, to one. With SpreadAll counts
// have failed when no address took them; Err tells of any address that takes
// nothing, whether or not counts were lost by that.
func (s *StatsD) Send(_ context.Context, flush Flush, counts []Count) Sent {
	s.begin(flush)
	var sent Sent
	for i := range counts {
		c := &counts[i]
		r, ok := s.rules[string(c.Rule)]
		if !ok {
			sent.Failed += c.N
			sent.Err = fmt.Errorf("statsd: the sink has no rule %q: it was made with other rules than the guard", c.Rule)
			continue
		}
		if !s.takes(r, c) {
			continue
		}
		s.name = append(s.name[:0], r.prefix...)
		s.name = wire.AppendKey(s.name, s.encoding, c.Text)
		p := s.home(r, s.name[r.head:])
		p.next(c)
		p.rule = r.number
		if c.Account.Number != 0 {
			s.name = strconv.AppendInt(append(s.name, ':'), c.N, 10)
			_, _ = p.Send(wire.AppendAccount(append(s.name, "|c"...), c.Account)) // it keeps what goes wrong to itself
			continue
		}
		// The client formats the line and hands it to the packer before it
		// returns, so the name need not be copied.
		_ = p.client.Inc(unsafe.String(&s.name[0], len(s.name)), c.N, 1)
	}
	s.sendHeldBack(flush.HeldBack)
	for _, p := range s.packers {
		must := len(counts) == 0 || p.due(&flush)
		p.quiet = !p.begun()
		sent.add(p.end(must))
	}
	return sent
}

// sendHeldBack sends what is held back of groups, with the counts of the flush itself.
func (s *StatsD) sendHeldBack(groups []HeldBack) {
	for i := range groups {
		g := &groups[i]
		r := s.rules[g.Rule]
		if r == nil || r.home == nil {
			continue // all keys of a rule with a share have one home
		}
		r.home.next(&Count{})
		r.home.held = g.N
		s.name = wire.AppendHeldBack(s.name[:0], s.encoding, r.prefix, g.Group, g.N)
		_, _ = r.home.Send(s.name) // it keeps what goes wrong to itself
	}
}

// SendOrigins implements [OriginSink]: origins go where the key's counts go. A
// StatsD that is not ours gets none.
func (s *StatsD) SendOrigins(_ context.Context, start time.Time, origins []Origin) Sent {
	var sent Sent
	if !s.packers[0].meta {
		return sent
	}
	head := &s.packers[0].head
	s.begin(Flush{Start: start, Now: start, Held: max(1, head.Held), Opened: head.Sums.Opened, Shed: head.Sums.Shed})
	for i := range origins {
		o := &origins[i]
		r, ok := s.rules[string(o.Rule)]
		if !ok {
			continue // its counts tell of that
		}
		s.name = s.encoding.Append(s.name[:0], o.Text)
		p := s.home(r, s.name)
		s.name = wire.AppendOrigin(s.name[:0], s.encoding, r.prefix, o.Text, wire.Origin{Kind: o.Kind, Name: o.Name, N: o.N})
		p.next(&Count{})
		_, _ = p.Send(s.name) // it keeps what goes wrong to itself
	}
	for _, p := range s.packers {
		sent.add(p.end(false))
	}
	return sent
}

func (s *StatsD) begin(f Flush) {
	for _, p := range s.packers {
		p.begin(f)
		f.Aged = 0
	}
}

// home is where the counts of an encoded key go.
func (s *StatsD) home(r *statsdRule, key []byte) *packer {
	if r.home != nil {
		return r.home
	}
	return s.packers[s.homes.pick(key)]
}

func (s *Sent) add(more Sent) {
	s.Lines += more.Lines
	s.Packets += more.Packets
	s.TooLong += more.TooLong
	s.Failed += more.Failed
	s.Err = cmp.Or(s.Err, more.Err)
}

// Patient implements [PatientSink]: a StatsD that is not ours sums up a second or
// more. One on Node loses packets of one line from some tens of thousands a second
// on, and a crowd brings 200 of them from each instance.
func (s *StatsD) Patient() bool { return !s.packers[0].meta }

// Accounts implements [AccountSink]: a StatsD that is not ours would add lines of 0.
func (s *StatsD) Accounts() bool { return s.packers[0].meta }

// Groups implements [GroupSink].
func (s *StatsD) Groups() bool { return s.packers[0].meta && s.encoding != wire.Strict }

// Fit implements [Sink].
func (s *StatsD) Fit(text []byte) []byte { return s.encoding.Fit(text) }

// Close implements [Sink].
func (s *StatsD) Close() error {
	var errs []error
	for _, p := range s.packers {
		errs = append(errs, p.client.Close())
	}
	return errors.Join(errs...)
}

// NewIncarnation tells this life of an instance from its others, as sinks name it
// in what they send.
func NewIncarnation() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}

// DefaultInstance is how sinks name a process that was given no name: host name and
// process id.
func DefaultInstance() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	clean := strings.Map(func(r rune) rune {
		if r < 0x80 && wire.ValidInstance(string(r)) {
			return r
		}
		return '-'
	}, host)
	return fmt.Sprintf("%.40s-%d", clean, os.Getpid())
}
