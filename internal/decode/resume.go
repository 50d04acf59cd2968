package decode

import (
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/snapshot"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// opening records the first packet of a sender's life that arrived here, and the packets before
// it that arrived later.
type opening struct {
	seq    uint64
	sums   wire.Sums
	start  time.Time // start of its flush
	heard  time.Time
	lowest uint64                // sequence of the oldest packet that arrived
	came   packetSums            // counts of packets before the first
	apart  map[accountKey]uint64 // counts of those packets not adjoining others of their account
	saved  []savedAccount
	lack   *lack // loss by rule up to the first statement; nil if no statement arrived
}

// resumption is the part of a resumed decoder's state that waits for senders of the previous
// process.
type resumption struct {
	since   time.Time // senders not heard yet may lack packets from before this time
	settled time.Time // time by which each live sender must have been heard
	until   time.Time // time from which earlier packets no longer matter
	waits   map[string]*sender
}

// savedAccount is an account from the previous process, of a sender that was heard before the
// snapshot was read.
type savedAccount struct {
	accountKey
	text []byte
	*snapshot.AccountRange
}

const (
	// beatEvery is the longest time in which a live sender sends nothing: collector.BeatEvery.
	beatEvery = time.Second
	// silentAfter is the silence at the cut after which a sender counts as ended, and is not
	// waited for.
	silentAfter = 3 * beatEvery
)

func (s *senders) resume(saved *snapshot.Snapshot, started, now time.Time, h Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := started
	if saved.Cut.After(since) { // the previous process heard senders up to the cut
		since = now
	}
	s.resumed = resumption{since: since, settled: started.Add(beatEvery + DefaultLag), until: now.Add(s.keep), waits: make(map[string]*sender)}
	if saved.Plain || s.plain.Load() != 0 {
		s.doubtResumed()
	}
	byPlace := make([]*sender, len(saved.Senders))
	for i := range saved.Senders {
		byPlace[i] = s.resumeSender(&saved.Senders[i], saved.Cut)
	}
	for i := range saved.Keys {
		k := &saved.Keys[i]
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
			s.resumeGap(from, &saved.Senders[i], h)
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

// boundBefore records that a gap now bounds what a sender sent before its first packet here,
// which had counted as an unknown loss.
func (s *senders) boundBefore(from *sender) {
	if from.missed != known {
		s.losses.subtractFound(from.missed, from.unheard)
		from.missed = known
	}
}

// takeYoungGap removes the gap before the first packet of a young life, since the snapshot may
// have counted part of it. resumeGap or gapBefore records another one.
func (a *accounts) takeYoungGap(h Handler) {
	if len(a.gaps) == 0 || a.gaps[0].from != 1 || a.gaps[0].to != a.opening.seq-1 {
		return
	}
	g := &a.gaps[0]
	a.owed -= min(a.owed, uint64(g.Booked))
	g.Loose, g.Booked, g.HeldBack = 0, 0, 0
	h.RecordGap(g.Gap)
	a.gaps = a.gaps[1:]
}

// doubtResumed records that an unknown amount from before the restart is missing.
func (s *senders) doubtResumed() { s.losses.settled = base.Later(s.losses.settled, s.resumed.since) }

// resumeSender continues a sender from a position. It returns nil if the position belongs to an
// earlier life, or if there are too many senders.
func (s *senders) resumeSender(p *snapshot.Sender, cut time.Time) *sender {
	waits := cut.Sub(p.Heard) <= silentAfter
	from := s.byName[p.Name]
	switch {
	case from != nil && from.incarnation == p.Incarnation:
		return from
	case from != nil || len(s.byName) >= maxSenders: // the last packets of the earlier life are unknown
		if waits {
			s.doubtResumed()
		}
		return nil
	}
	heard := p.Heard.Add(base.Later(cut, s.resumed.since).Sub(cut)) // the time without a listening process is not its silence
	from = &sender{name: p.Name, incarnation: p.Incarnation, sequence: sequence{first: 1, last: p.Seq}, heard: heard, accounts: resumedAccounts(p)}
	s.resumeRuleSums(&from.accounts, p, nil, nil)
	from.accounts.resumed = true
	s.byName[from.name] = from
	if waits {
		s.resumed.waits[from.name] = from
	}
	return from
}

// resumedAccounts returns the accounts of a sender without the accounts of keys. The packet at
// the saved position may have been counted only in part, so it counts as not arrived.
func resumedAccounts(p *snapshot.Sender) accounts {
	return accounts{
		life: p.Incarnation, sums: p.Sums, seq: p.Seq - 1, start: p.Start, first: max(1, min(p.First, p.Seq-1)),
		resumedAt: p.Seq - 1, opened: p.Opened, owed: p.Owed, owedSince: p.Since, carriedOver: p.Carried,
		pruned: openGap{Gap: Gap{From: p.PrunedFrom}, to: p.PrunedTo, opened: p.PrunedOpened},
	}
}

// resumeAccount continues the account of a key that was not heard here.
func (s *senders) resumeAccount(a *accounts, key accountKey, x *snapshot.AccountRange) {
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

// gapBefore records everything that a sender sent before its first packet here as a gap. The
// counts are missing, or were counted before.
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
	h.RecordGap(g)
}

// addEarlierPacket records the sums of a packet that precedes the first one.
func (o *opening) addEarlierPacket(m *wire.Meta, arrived *packetSums) {
	if o == nil || m.Seq >= o.seq {
		return
	}
	o.lowest = min(o.lowest, m.Seq)
	o.came.booked, o.came.loose, o.came.heldBack = o.came.booked+arrived.booked, o.came.loose+arrived.loose, o.came.heldBack+arrived.heldBack
}

// addApart records n counts of an account that do not adjoin its known range.
func (o *opening) addApart(key accountKey, n uint64) {
	if o == nil || n == 0 {
		return
	}
	if o.apart == nil {
		o.apart = make(map[accountKey]uint64)
	}
	o.apart[key] += n
}

// openLife records the first packet of a life. If the sender is waited for, its earlier lives may
// have sent more than is known.
func (s *senders) openLife(from *sender, m *wire.Meta, start time.Time, h Handler) {
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

// continueResumed records the first packet of a sender that was resumed.
func (s *senders) continueResumed(from *sender, m *wire.Meta) {
	a := &from.accounts
	a.resumed, a.since = false, m.Start+m.Sums.Age
	delete(s.resumed.waits, from.name)
	if m.Sums.Booked < a.sums.Booked || m.Sums.Loose < a.sums.Loose || s.mostClaimed > 0 && claimed(a, m) > s.mostClaimed {
		s.doubtResumed()
	}
}

// settleRestart ends the doubt about packets from before the restart, once each sender was
// heard or the packets no longer matter.
func (s *senders) settleRestart(now time.Time, h Handler) {
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
