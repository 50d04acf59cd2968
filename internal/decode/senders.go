package decode

import (
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
)

// senders follows the sequence of each instance's packets, so that loss is
// known, and what each holds back. Several decoders can share it: an instance that
// dials anew comes to another socket, and that is no loss.
type senders struct {
	known atomic.Int64 // how many there are, for Stats
	plain atomic.Int64 // when the last packet without sums arrived, in ns since the Unix epoch

	mu     sync.Mutex // guards what follows; held while handlers are called
	byName map[string]*sender
	silent map[string]*sender       // those that were not heard for long: how far they were
	late   map[string]time.Duration // of these, how old the counts of those are that come late
	off    map[string]clockOffset   // and those whose clocks are off
	swept  time.Time
	held   heldTotals
	losses losses
	names  *nameCaps         // nil: as many as are followed
	peer   func() netip.Addr // returns the address of the packet's sender; nil if unknown

	rules        *Numbered
	gaps         uint64 // the newest ID of a gap
	accountsLeft int    // how many more are remembered
	groups       uint32 // the mark of the rules with a share
	ruled        ruled
	jumps        uint32        // the mark of the rules with a jump
	keep         time.Duration // for so long gaps matter
	resumed      resumption
	mostClaimed  uint64 // a packet may say that so much is missing; 0: no bound

	steady func(now time.Time) (steady time.Time, set time.Duration) // see steadyTime
}

func newSenders(n *Numbered) *senders {
	rules := n.inOrder
	return &senders{rules: n, held: newHeld(n.byNumber), groups: wire.GroupsMark(rules), ruled: newRuled(n), jumps: wire.JumpsMark(rules), accountsLeft: DefaultAccountsMemory / accountSize, keep: Lookback(rules) + heldGrace, steady: steadyTime()}
}

type sender struct {
	name        string
	incarnation uint64
	first       uint64 // sequence of the first packet that came
	missed      int64  // when packets before first were noticed to be missing, as in a gap
	unheard     int64  // how many of these have not come
	last        uint64 // highest sequence seen
	turns       *turns // nil while each packet came in its turn
	heard       time.Time
	clock       clock
	doubt       time.Duration // see clock; 0 if it is not corrected
	skew        time.Duration // see [Count.Skew]
	lateness    lateness
	holding     *holding // nil while nothing is held back
	accounts    accounts
	tally       tally
	agreement   agreement
}

// turns records packets that arrive out of order.
type turns struct {
	seen
	gaps [maxGaps]gap
	next int // the oldest gap
}

// seen are sequences that came, the newest ones.
type seen [reorder / 64]uint64

// gap is a run of sequences that was missing when a later one came.
type gap struct {
	from, to uint64
	noticed  int64 // see losses, or known
}

const (
	// senderLife is after which silence an instance is not known any more. Of maxSilent such
	// the state is kept: a gap is reported when they send again, and what the others sent
	// meanwhile is unknown.
	senderLife = time.Minute
	maxSilent  = 4096
	// liveFor is how long after its last packet an instance counts as live.
	liveFor = 10 * time.Second
	// maxSenders bounds the table; packets of further instances are counted,
	// but their losses are not known.
	maxSenders = 100_000
	// reorder is how far behind the newest a packet may arrive and still be distinguished
	// from a duplicate: more than an instance sends in the time that counts may be late.
	reorder = 4096
	// maxGaps is how many gaps of a sender may be filled later.
	maxGaps = 256
	// known stands for the time of a gap whose size is reported.
	known = math.MinInt64
)

// find returns the sender of a packet, or nil if there are too many.
func (s *senders) find(m *wire.Meta, now time.Time) *sender {
	s.sweep(now)
	known := s.byName[string(m.Instance)]
	if known == nil {
		if len(s.byName) >= maxSenders || s.names != nil && !s.names.admit(s.from(), len(s.byName), now) {
			return nil
		}
		if s.byName == nil {
			s.byName = make(map[string]*sender)
		}
		if known = s.silent[string(m.Instance)]; known == nil {
			known = &sender{name: string(m.Instance)}
		}
		delete(s.silent, known.name)
		s.byName[known.name] = known
	}
	known.heard = now
	s.known.Store(int64(len(s.byName)))
	return known
}

// from returns the address that the packet came from.
func (s *senders) from() netip.Addr {
	if s.peer == nil {
		return netip.Addr{}
	}
	return s.peer()
}

// packet records a packet. lost is how many packets before it are now known to be missing,
// and -1 when one that had been counted as missing arrives.
func (s *sender) packet(m *wire.Meta, now time.Time, l *losses) (lost int64, duplicate bool) {
	if s.incarnation != m.Incarnation || s.last == 0 {
		// A new life. Sequences begin at 1, but this aggregator may have started later than the
		// instance, or was out of its reach: what came before is unknown, and not lost on its way.
		s.incarnation, s.first, s.last = m.Incarnation, m.Seq, m.Seq
		s.turns, s.missed = nil, known
		switch {
		case beginsWith(m):
		case isYoung(m):
			s.first, s.turns = 1, new(turns)
			s.turns.skip(1, m.Seq)
			s.turns.note(gap{1, m.Seq - 1, known})
			return int64(m.Seq - 1), false
		default:
			s.unheard = int64(min(m.Seq-1, math.MaxInt64))
			s.missed = l.miss(s.unheard, now)
		}
		return 0, false
	}
	if s.turns == nil {
		if m.Seq == s.last+1 { // as nearly always
			s.last++
			return 0, false
		}
		s.turns = new(turns)
		for q := s.last; q >= s.first && s.last-q < reorder; q-- {
			s.turns.mark(q)
		}
	}
	if m.Seq > s.last {
		lost = int64(m.Seq - s.last - 1)
		s.turns.skip(s.last+1, m.Seq)
		if lost > 0 {
			noticed := int64(known)
			if !m.Sums.Told || !s.accounts.sums.Told {
				noticed = l.miss(lost, now)
			}
			s.turns.note(gap{s.last + 1, m.Seq - 1, noticed})
		}
		s.last = m.Seq
		return lost, false
	}
	if s.last-m.Seq >= reorder || !s.turns.mark(m.Seq) {
		return 0, true
	}
	if m.Seq < s.first {
		if s.missed != known {
			l.found(s.missed, 1)
			s.unheard--
		}
		return 0, false // overtaken by the first one heard
	}
	for _, g := range s.turns.gaps {
		if g.from <= m.Seq && m.Seq <= g.to && g.noticed != known {
			l.found(g.noticed, 1)
		}
	}
	return -1, false
}

// youngest is how many packets of a life can have been missed, and the sums of the next one still
// bound what they held: a second or two. Later the sums are of so much that they say nothing.
const youngest = 16

// isYoung reports whether the packets before this one of its sender are missing as those in a gap
// are: its sums are all that they can have held.
func isYoung(m *wire.Meta) bool { return 1 < m.Seq && m.Seq <= youngest && m.Sums.Told }

// beginsWith reports whether nothing was counted in the packets before this one of its sender.
func beginsWith(m *wire.Meta) bool {
	return m.Seq <= 1 || m.Sums.Told && m.Sums.Booked == 0 && m.Sums.Loose == 0 && m.Sums.HeldBack == 0
}

// noSums records a packet of a sender that does not report its sums: packets that the system
// drops may be such, and show in no sequence.
func (s *senders) noSums(now time.Time) {
	if ns := now.UnixNano(); ns-s.plain.Load() > int64(Tick) {
		s.plain.Store(ns)
	}
}

// sums records the sums of a packet, and reports what is missing before it.
func (s *senders) sums(from *sender, m *wire.Meta, start time.Time, h Handler) {
	a := &from.accounts
	switch {
	case a.life != m.Incarnation:
		s.accountsLeft += len(a.keys)
		s.open(from, m, start, h)
		*a = accounts{opening: a.opening, life: m.Incarnation, opened: m.Sums.Opened, first: m.Seq, since: m.Start + m.Sums.Age}
		a.readBuckets(m, s.jumps)
		if m.Seq == 1 {
			a.since = math.MinInt64 // nothing came before
		}
		if !isYoung(m) || !s.resumed.until.IsZero() {
			s.divideByRule(a, m)
			return
		}
		a.first, a.start, a.sums.Told = 1, time.Unix(0, 0), true
	case m.Seq <= a.seq:
		if _, _, stated := a.readBuckets(m, s.jumps); stated {
			a.divide(h)
		}
		return
	case a.sums.Shed != m.Sums.Shed:
		a.begin(m, &s.accountsLeft)
	}
	resumed := a.resumed
	if resumed {
		s.reach(from, m)
	}
	if s.mostClaimed > 0 && claimed(a, m) > s.mostClaimed { // no sender of ours could have sent so much
		a.begin(m, &s.accountsLeft)
		return
	}
	a.prune(s.keep)
	s.gaps++
	first, last, stated := a.readBuckets(m, s.jumps)
	flush := start.Add(time.Duration(m.Sums.Age))
	g, opened := a.gap(m, flush, s.gaps), uint64(math.MaxUint64)
	if resumed {
		if g = a.withCarried(g, m.Seq, m.Sums.Opened, s.gaps); a.carriedOver.Seq > 0 {
			opened = a.carriedOver.Opened
		}
	}
	if g != nil {
		if latest := flush.Add(from.doubt); from.doubt > 0 && latest.After(g.To) {
			g.To = latest
		}
		if resumed {
			g.widen(a.owedSince, from.heard)
		}
		g.first, g.last = first, last
	}
	divided := s.divideByRule(a, m)
	if g != nil {
		divided = min(divided, len(a.gaps)-1)
	}
	for i := divided; i < len(a.gaps); i++ {
		h.Missing(a.gaps[i].Gap)
	}
	if g != nil {
		a.spare(&g.Gap, opened, h)
	}
	if stated {
		a.divide(h)
	}
}

// mark records a sequence. It reports false if it was recorded before.
func (s *seen) mark(seq uint64) bool {
	word, bit := &s[seq%reorder/64], uint64(1)<<(seq%64)
	was := *word
	*word |= bit
	return was&bit == 0
}

// skip goes on to a sequence; those before it, from one on, were not seen.
func (s *seen) skip(from, to uint64) {
	if to-from >= reorder {
		*s = seen{}
	}
	for q := from; q < to && to-from < reorder; q++ {
		s[q%reorder/64] &^= 1 << (q % 64)
	}
	s[to%reorder/64] |= 1 << (to % 64)
}

func (t *turns) note(g gap) {
	t.gaps[t.next] = g
	t.next = (t.next + 1) % maxGaps
}

// advance moves the clock on to now.
func (s *senders) advance(now time.Time, h Handler) {
	s.held.decay(now)
	s.held.report(h.Held)
	s.settle(now, h)
}

// keepSilent keeps the state of a silent instance, in place of any other if there is no room.
func (s *senders) keepSilent(of *sender) {
	if s.silent == nil {
		s.silent = make(map[string]*sender)
	}
	if len(s.silent) >= maxSilent {
		for name := range s.silent {
			delete(s.silent, name)
			break
		}
	}
	a := &of.accounts
	s.silent[of.name] = &sender{
		name: of.name, incarnation: of.incarnation, first: of.first, last: of.last, missed: known,
		accounts: accounts{
			life: a.life, sums: a.sums, seq: a.seq, start: a.start, first: a.seq + 1, since: a.since,
			opened: a.lastOpened(), rules: a.rules,
		},
	}
}

func (s *senders) sweep(now time.Time) {
	if now.Sub(s.swept).Abs() < senderLife { // readers are not all at the same time
		return
	}
	s.swept = now
	for name, known := range s.byName {
		known.accounts.expire(idleAccount, &s.accountsLeft)
		if o := known.accounts.opening; o != nil && now.Sub(o.heard) > s.keep {
			known.accounts.opening = nil // no snapshot is of use any more
		}
		if now.Sub(known.heard) > senderLife && known.holding == nil {
			s.accountsLeft += len(known.accounts.keys)
			delete(s.byName, name)
			delete(s.late, name)
			delete(s.off, name)
			s.keepSilent(known)
		}
	}
	s.known.Store(int64(len(s.byName)))
}
