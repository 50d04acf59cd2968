package decode

import (
	"time"

	"github.com/hotparam/hotparam/internal/snapshot"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// opening is the first packet of a sender's life that was heard here, with what came later of
// packets before it.
type opening struct {
	seq    uint64
	sums   wire.Sums
	start  time.Time // of its flush
	heard  time.Time
	lowest uint64                // the oldest packet that came
	came   packetSums            // of packets before the first
	apart  map[accountKey]uint64 // counts of these that do not adjoin what else came of the account
	saved  []savedAccount
	lack   *lack // by rule, up to the first statement; nil if none came
}

// resumption is what a decoder that has resumed does not know yet.
type resumption struct {
	since   time.Time // packets of before may be missing of senders that were not heard
	settled time.Time // by then each live sender was heard
	until   time.Time // then nothing of before matters any more
	waits   map[string]*sender
}

// savedAccount is an account of the process before, of a sender that was heard before the
// snapshot was read.
type savedAccount struct {
	accountKey
	text []byte
	*snapshot.Account
}

const (
	// beatEvery is the longest time in which a live sender sends nothing: collector.BeatEvery.
	beatEvery = time.Second
	// silentAfter is after which silence a sender had ended at the cut: it is not waited for.
	silentAfter = 3 * beatEvery
)

func (s *senders) resume(of *snapshot.Snapshot, started, now time.Time, h Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := started
	if of.Cut.After(since) { // the other one heard them
		since = now
	}
	s.resumed = resumption{since: since, settled: started.Add(beatEvery + DefaultLag), until: now.Add(s.keep), waits: make(map[string]*sender)}
	if of.Plain || s.plain.Load() != 0 {
		s.doubtResumed()
	}
	byPlace := make([]*sender, len(of.Senders))
	for i := range of.Senders {
		byPlace[i] = s.resumeSender(&of.Senders[i], of.Cut)
	}
	for i := range of.Keys {
		k := &of.Keys[i]
		key := accountKey{rules.Hash(k.Text), int32(k.Rule)}
		for j := range k.Accounts {
			x := &k.Accounts[j]
			if from := byPlace[x.Sender]; from == nil {
				continue
			} else if o := from.accounts.opening; o != nil {
				o.saved = append(o.saved, savedAccount{key, k.Text, x})
			} else {
				s.resumeAccount(&from.accounts, key, x)
			}
		}
	}
	for _, from := range s.byName {
		if from.accounts.opening != nil {
			s.boundBefore(from)
			from.accounts.takeYoungGap(h)
		}
	}
	for i, from := range byPlace {
		if from != nil && from.accounts.opening != nil {
			s.resumeGap(from, &of.Senders[i], h)
			from.accounts.opening = nil
		}
	}
	for _, from := range s.byName {
		if o := from.accounts.opening; o != nil {
			s.gapBefore(from, o, h)
			from.accounts.opening = nil
		}
	}
	s.losses.awaited = since
	s.losses.report(h)
}

// boundBefore takes back that what a sender sent before its first packet here is unknown: a gap
// bounds it.
func (s *senders) boundBefore(from *sender) {
	if from.missed != known {
		s.losses.found(from.missed, from.unheard)
		from.missed = known
	}
}

// takeYoungGap takes back the gap before the first packet of a young life: what a snapshot has of
// it was counted.
func (a *accounts) takeYoungGap(h Handler) {
	if len(a.gaps) == 0 || a.gaps[0].from != 1 || a.gaps[0].to != a.opening.seq-1 {
		return
	}
	g := &a.gaps[0]
	a.owed -= min(a.owed, uint64(g.Booked))
	g.Loose, g.Booked, g.HeldBack = 0, 0, 0
	h.Missing(g.Gap)
	a.gaps = a.gaps[1:]
}

// doubtResumed records that something of before is missing, and that it is not known how much.
func (s *senders) doubtResumed() { s.losses.settled = later(s.losses.settled, s.resumed.since) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// resumeSender continues a sender from a position. It returns nil if that is of an earlier
// life, or there are too many.
func (s *senders) resumeSender(p *snapshot.Sender, cut time.Time) *sender {
	waits := cut.Sub(p.Heard) <= silentAfter
	from := s.byName[p.Name]
	switch {
	case from != nil && from.incarnation == p.Incarnation:
		return from
	case from != nil || len(s.byName) >= maxSenders: // what the earlier life sent last is not known
		if waits {
			s.doubtResumed()
		}
		return nil
	}
	if s.byName == nil {
		s.byName = make(map[string]*sender)
	}
	heard := p.Heard.Add(later(cut, s.resumed.since).Sub(cut)) // it was not silent while no process listened
	from = &sender{name: p.Name, incarnation: p.Incarnation, first: 1, last: p.Seq, heard: heard, accounts: resumedAccounts(p)}
	s.resumeRuleSums(&from.accounts, p, nil, nil)
	from.accounts.resumed = true
	s.byName[from.name] = from
	s.known.Store(int64(len(s.byName)))
	if waits {
		s.resumed.waits[from.name] = from
	}
	return from
}

// resumedAccounts returns the accounts of a sender without those of keys. More of the packet of
// the position may have been sent, so it counts as one that has not come.
func resumedAccounts(p *snapshot.Sender) accounts {
	return accounts{
		life: p.Incarnation, sums: p.Sums, seq: p.Seq - 1, start: p.Start, first: max(1, min(p.First, p.Seq-1)),
		resumedAt: p.Seq - 1, opened: p.Opened, owed: p.Owed, owedSince: p.Since, carriedOver: p.Carried,
		pruned: openGap{Gap: Gap{From: p.PrunedFrom}, to: p.PrunedTo, opened: p.PrunedOpened},
	}
}

// resumeAccount continues the account of a key that was not heard of here.
func (s *senders) resumeAccount(a *accounts, key accountKey, x *snapshot.Account) {
	if s.accountsLeft <= 0 || a.keys[key] != nil {
		return
	}
	if a.keys == nil {
		a.keys = make(map[accountKey]*keyAccount)
	}
	s.accountsLeft--
	seq := min(x.Seq, a.resumedAt)
	a.keys[key] = &keyAccount{number: x.Number, low: x.Low, high: x.High, seq: seq, since: seq, heard: x.Heard}
}

// gapBefore records that all that a sender has sent before its first packet here is missing,
// or was counted before.
func (s *senders) gapBefore(from *sender, o *opening, h Handler) {
	if o.seq == 1 {
		return
	}
	if s.mostClaimed > 0 && o.sums.Booked+o.sums.Loose+o.sums.HeldBack > s.mostClaimed {
		s.doubtResumed()
		return
	}
	s.gaps++
	g := Gap{ID: s.gaps, From: time.Unix(0, 0), To: o.heard, Loose: toCount(o.sums.Loose), Booked: toCount(o.sums.Booked), HeldBack: toCount(o.sums.HeldBack)}
	if o.lack != nil {
		g.ByRule = o.lack.joint()
	}
	h.Missing(g)
}

// note records what came of a packet before the first one.
func (o *opening) note(m *wire.Meta, of *packetSums) {
	if o == nil || m.Seq >= o.seq {
		return
	}
	o.lowest = min(o.lowest, m.Seq)
	o.came.booked, o.came.loose, o.came.heldBack = o.came.booked+of.booked, o.came.loose+of.loose, o.came.heldBack+of.heldBack
}

// noteApart records n counts of an account that do not adjoin what is known of it.
func (o *opening) noteApart(key accountKey, n uint64) {
	if o == nil || n == 0 {
		return
	}
	if o.apart == nil {
		o.apart = make(map[accountKey]uint64)
	}
	o.apart[key] += n
}

// open records the first packet of a life. The lives before it of a sender that is waited for
// may have sent more than is known.
func (s *senders) open(from *sender, m *wire.Meta, start time.Time, h Handler) {
	o := &opening{seq: m.Seq, lowest: m.Seq, sums: m.Sums, start: start.Add(time.Duration(m.Sums.Age)), heard: from.heard}
	if s.resumed.until.IsZero() {
		from.accounts.opening = o
		return
	}
	if _, waits := s.resumed.waits[from.name]; waits {
		delete(s.resumed.waits, from.name)
		s.doubtResumed()
	}
	s.boundBefore(from)
	s.gapBefore(from, o, h)
}

// reach records the first packet of a sender that was resumed.
func (s *senders) reach(from *sender, m *wire.Meta) {
	a := &from.accounts
	a.resumed, a.since = false, m.Start+m.Sums.Age
	delete(s.resumed.waits, from.name)
	if m.Sums.Booked < a.sums.Booked || m.Sums.Loose < a.sums.Loose || s.mostClaimed > 0 && claimed(a, m) > s.mostClaimed {
		s.doubtResumed()
	}
}

// settle ends what is not known of before when each sender was heard, or when it matters no
// more.
func (s *senders) settle(now time.Time, h Handler) {
	r := &s.resumed
	if r.until.IsZero() {
		return
	}
	if last := s.plain.Load(); last > r.since.UnixNano() {
		s.doubtResumed()
	}
	if len(r.waits) == 0 && !now.Before(r.settled) || now.After(r.until) {
		s.losses.awaited = time.Time{}
	}
	s.losses.report(h)
	if now.After(r.until) {
		*r = resumption{}
	}
}
