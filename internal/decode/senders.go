package decode

import (
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
)

// senders tracks the sequence numbers of each instance's packets, to detect loss, and the
// counts that each instance holds back. Several decoders can share it, so that an instance that
// dials again and reaches another socket does not count as a loss.
type senders struct {
	plain atomic.Int64 // arrival of the newest packet without sums, in ns since the Unix epoch

	mu     sync.Mutex // guards the fields below; held while handlers are called
	byName map[string]*sender
	silent map[string]*sender // senders that have been silent for long, with their positions
	swept  time.Time
	held   heldTotals
	losses losses
	names  *nameCaps // nil if only maxSenders bounds them

	rules        *Numbered
	gaps         uint64 // the newest ID of a gap
	accountsLeft int    // number of accounts that may still be remembered
	groups       uint32 // mark of the rules with a share
	ruled        ruled
	jumps        uint32        // mark of the rules with a jump
	keep         time.Duration // time for which gaps matter
	resumed      resumption
	mostClaimed  uint64 // most that a packet may claim to be missing; 0 means no bound

	steady func(now time.Time) (steady time.Time, set time.Duration) // see steadyTime
}

func newSenders(n *Numbered) *senders {
	rules := n.inOrder
	return &senders{
		byName: make(map[string]*sender), silent: make(map[string]*sender),
		rules: n, held: newHeld(n.byNumber), groups: wire.GroupsMark(rules), ruled: newRuled(n), jumps: wire.JumpsMark(rules),
		accountsLeft: DefaultAccountsMemory / accountSize, keep: Lookback(rules) + heldGrace, steady: steadyTime(),
	}
}

type sender struct {
	name        string
	incarnation uint64
	sequence                   // numbers of the packets that have arrived
	missed      int64          // argument for losses.subtractFound for the packets before first, or known
	unheard     int64          // number of those packets that have not arrived
	unknown     *unknownLosses // nil if there are none
	heard       time.Time
	clock       senderClock
	doubt       time.Duration // see clock; 0 if the clock's offset is not corrected
	skew        time.Duration // see [Count.Skew]
	lateness    lateness
	holding     *holding // nil if no counts are held back
	accounts    accounts
	tally       secondCounts
	agreement   agreement
}

// unknownLosses are the newest runs of missing packets of a sender that reports no sums.
type unknownLosses struct {
	runs [maxRuns]lostRun
	next int // the oldest run
}

// lostRun is a run of sequences that was missing when a later one arrived.
type lostRun struct {
	from, to uint64
	noticed  int64 // argument for losses.subtractFound
}

const (
	// senderLife is the silence after which an instance is no longer known. The state of up to
	// maxSilent of them is kept, so that a gap is reported when they send again. What the
	// others sent in the meantime is unknown.
	senderLife = time.Minute
	maxSilent  = 4096
	// liveFor is the time after its last packet for which an instance counts as live.
	liveFor = 10 * time.Second
	// maxSenders bounds the table. Packets of further instances are counted, but their losses
	// are unknown.
	maxSenders = 100_000
	// maxRuns is the number of a sender's unknown losses that can still be found.
	maxRuns = 256
	// known replaces the time of packets whose loss is reported as a gap.
	known = math.MinInt64
)

// senderFor returns the sender of a packet, or nil if there are too many. source returns the
// address that the packet came from.
func (s *senders) senderFor(m *wire.Meta, now time.Time, source func() netip.Addr) *sender {
	s.sweep(now)
	known := s.byName[string(m.Instance)]
	if known == nil {
		if len(s.byName) >= maxSenders || s.names != nil && !s.names.admit(source(), len(s.byName), now) {
			return nil
		}
		if known = s.silent[string(m.Instance)]; known == nil {
			known = &sender{name: string(m.Instance)}
		}
		delete(s.silent, known.name)
		s.byName[known.name] = known
	}
	known.heard = now
	return known
}

// recordPacket records a packet. lost is the number of packets before it that are newly known
// to be missing, or -1 if the packet had been counted as missing itself.
func (s *sender) recordPacket(m *wire.Meta, now time.Time, l *losses) (lost int64, duplicate bool) {
	if s.incarnation != m.Incarnation || s.last == 0 {
		// A new life. Sequences begin at 1, but this aggregator may have started later than the
		// instance, or was unreachable. Earlier packets are unknown then, not lost in transit.
		s.incarnation, s.sequence = m.Incarnation, sequence{first: m.Seq, last: m.Seq}
		s.unknown, s.missed = nil, known
		switch {
		case beginsWith(m):
		case isYoung(m):
			s.first, s.seen = 1, new(seen)
			s.seen.skip(1, m.Seq)
			return int64(m.Seq - 1), false
		default:
			s.unheard = int64(min(m.Seq-1, math.MaxInt64))
			s.missed = l.recordMissing(s.unheard, now)
		}
		return 0, false
	}
	before := s.last
	switch {
	case !s.isNew(m.Seq):
		return 0, true
	case m.Seq > before:
		lost = int64(m.Seq - before - 1)
		if lost > 0 && (!m.Sums.Stated || !s.accounts.sums.Stated) { // otherwise the sums show the loss
			s.addUnknown(lostRun{before + 1, m.Seq - 1, l.recordMissing(lost, now)})
		}
		return lost, false
	case m.Seq < s.first:
		if s.missed != known {
			l.subtractFound(s.missed, 1)
			s.unheard--
		}
		return 0, false // overtaken by the first one that arrived
	}
	if s.unknown != nil {
		for _, run := range s.unknown.runs {
			if run.from <= m.Seq && m.Seq <= run.to {
				l.subtractFound(run.noticed, 1)
			}
		}
	}
	return -1, false
}

func (s *sender) addUnknown(run lostRun) {
	if s.unknown == nil {
		s.unknown = new(unknownLosses)
	}
	s.unknown.runs[s.unknown.next] = run
	s.unknown.next = (s.unknown.next + 1) % maxRuns
}

// youngest is the highest sequence of a first packet here whose sums are a useful bound of the
// packets missed before it: those of a second or two. The sums of a later packet are too large.
const youngest = 16

// isYoung reports whether the packets before this one, the first of its sender, are missing as
// in a gap: the sums of this one bound their contents.
func isYoung(m *wire.Meta) bool { return 1 < m.Seq && m.Seq <= youngest && m.Sums.Stated }

// beginsWith reports whether nothing was counted in the packets before this one of its sender.
func beginsWith(m *wire.Meta) bool {
	return m.Seq <= 1 || m.Sums.Stated && m.Sums.Booked == 0 && m.Sums.Loose == 0 && m.Sums.HeldBack == 0
}

// recordPlain records a packet of a sender that does not report its sums. Packets dropped by the
// system may be such packets, and no sequence shows their loss.
func (s *senders) recordPlain(now time.Time) {
	if ns := now.UnixNano(); ns-s.plain.Load() > int64(Tick) {
		s.plain.Store(ns)
	}
}

// recordSums records the sums of a packet, and reports the loss before it.
func (s *senders) recordSums(from *sender, m *wire.Meta, start time.Time, h Handler) {
	a := &from.accounts
	switch {
	case a.life != m.Incarnation:
		s.accountsLeft += len(a.keys)
		s.openLife(from, m, start, h)
		*a = accounts{opening: a.opening, life: m.Incarnation, opened: m.Sums.Opened, first: m.Seq, since: m.Start + m.Sums.Age}
		a.readBuckets(m, s.jumps)
		if m.Seq == 1 {
			a.since = math.MinInt64 // no packet came before
		}
		if !isYoung(m) || !s.resumed.until.IsZero() {
			s.divideByRule(a, m)
			return
		}
		a.first, a.start, a.sums.Stated = 1, time.Unix(0, 0), true
	case m.Seq <= a.seq:
		if _, _, stated := a.readBuckets(m, s.jumps); stated {
			a.divideByBucket(h)
		}
		return
	case a.sums.Shed != m.Sums.Shed:
		a.forgetAccounts(m, &s.accountsLeft)
	}
	resumed := a.resumed
	if resumed {
		s.continueResumed(from, m)
	}
	if s.mostClaimed > 0 && claimed(a, m) > s.mostClaimed { // none of our senders could have sent so much
		a.forgetAccounts(m, &s.accountsLeft)
		return
	}
	a.prune(s.keep)
	s.gaps++
	first, last, stated := a.readBuckets(m, s.jumps)
	flush := start.Add(time.Duration(m.Sums.Age))
	g, opened := a.addGap(m, flush, s.gaps), uint64(math.MaxUint64)
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
		h.RecordGap(a.gaps[i].Gap)
	}
	if g != nil {
		a.excludeKeys(&g.Gap, opened, h)
	}
	if stated {
		a.divideByBucket(h)
	}
}

// advance moves the clock on to now.
func (s *senders) advance(now time.Time, h Handler) {
	s.held.decay(now)
	s.held.report(h.SetHeldBackBound)
	s.settleRestart(now, h)
}

// keepSilent keeps the state of a silent instance. If there is no room, it replaces any other.
func (s *senders) keepSilent(silent *sender) {
	if len(s.silent) >= maxSilent {
		for name := range s.silent {
			delete(s.silent, name)
			break
		}
	}
	a := &silent.accounts
	s.silent[silent.name] = &sender{
		name: silent.name, incarnation: silent.incarnation, sequence: sequence{first: silent.first, last: silent.last}, missed: known,
		accounts: accounts{
			life: a.life, sums: a.sums, seq: a.seq, start: a.start, first: a.seq + 1, since: a.since,
			opened: a.lastOpened(), rules: a.rules,
		},
	}
}

func (s *senders) sweep(now time.Time) {
	if now.Sub(s.swept).Abs() < senderLife { // the times of different readers are not in order
		return
	}
	s.swept = now
	for name, known := range s.byName {
		known.accounts.expireIdle(idleAccount, &s.accountsLeft)
		if o := known.accounts.opening; o != nil && now.Sub(o.heard) > s.keep {
			known.accounts.opening = nil // a snapshot would come too late to matter
		}
		if now.Sub(known.heard) > senderLife && known.holding == nil {
			s.accountsLeft += len(known.accounts.keys)
			delete(s.byName, name)
			s.keepSilent(known)
		}
	}
}
