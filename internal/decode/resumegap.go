package decode

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/snapshot"
	"github.com/hotparam/hotparam/internal/wire"
)

// resumeGap records the gap between the saved position of a sender and its first packet here.
// It heals the part of that gap that the sender's accounts show.
func (s *senders) resumeGap(from *sender, p *snapshot.Sender, h Handler) {
	a := &from.accounts
	o, before := a.opening, resumedAccounts(p)
	m := wire.Meta{Seq: o.seq, Sums: o.sums}
	if m.Sums.Booked < p.Sums.Booked || m.Sums.Loose < p.Sums.Loose || s.mostClaimed > 0 && claimed(&before, &m) > s.mostClaimed {
		s.doubtResumed()
		return
	}
	from.continueAt(p.Seq)
	s.gaps++
	g, opened := before.withCarried(before.addGap(&m, o.start, s.gaps), o.seq, o.sums.Opened, s.gaps), before.opened
	if a.carriedOver = before.carriedOver; a.carriedOver.Seq > 0 {
		opened = a.carriedOver.Opened
	}
	if g != nil {
		g.widen(before.owedSince, o.heard)
		g.subtractArrived(&o.came)
	}
	s.resumeRuleSums(a, p, g, h)
	if g != nil {
		h.RecordGap(g.Gap)
		a.insertGap(0, *g)
	}
	a.owed += before.owed
	if o.sums.Shed != p.Sums.Shed { // the sender restarted its accounts
		return
	}
	if a.opened == o.sums.Opened {
		a.opened = before.opened
	}
	if a.pruned.to == 0 {
		a.pruned = before.pruned
	}
	a.first, a.resumedAt = before.first, before.seq
	for i := range o.saved {
		s.settleResumed(from, &o.saved[i], g, h)
	}
	if g == nil {
		return
	}
	a.excludeKeys(&g.Gap, opened, h)
}

// settleResumed compares an account with its counted range in the previous process.
func (s *senders) settleResumed(from *sender, x *savedAccount, g *openGap, h Handler) {
	a := &from.accounts
	k := a.keys[x.accountKey]
	switch {
	case k == nil:
		s.resumeAccount(a, x.accountKey, x.AccountRange)
		return
	case k.number != x.Number || k.low < x.High || g == nil:
		return
	}
	missing, apart := k.low-x.High, a.opening.apart[x.accountKey]
	if missing < apart || missing-apart > a.owed {
		return
	}
	missing -= apart
	before := k.low
	k.low, k.since = x.Low, min(x.Seq, a.resumedAt)
	if k.since < g.from {
		h.ExcludeFromGap(g.ID, int(x.rule), x.hash, true)
	}
	if missing == 0 {
		return
	}
	start, end := a.missingRange(0, k.seq+1) // some may belong to a gap after the first packet
	if start.IsZero() {
		start, end = g.From, g.To
	}
	a.reduceOwed(missing, x.Number, 0)
	a.rememberHeal(x.Number, heal{x.High, before, start, end})
	h.AddHealedCount(Count{Rule: int(x.rule), Hash: x.hash, Text: x.text, N: toCount(missing), When: start, Instance: from.name}, end)
}

// widen extends g to the gap of a restart: counts owed from before may be healed with it, and
// the sender's clock may not be known yet.
func (g *openGap) widen(owedSince, heard time.Time) {
	if !owedSince.IsZero() && owedSince.Before(g.From) {
		g.From = owedSince
	}
	g.To = base.Later(g.To, heard)
}

// save returns the part of s that the next process needs: the first statement that it receives
// shows the loss.
func (s *ruleSums) save() snapshot.Sums {
	return snapshot.Sums{Seq: s.seq, Have: slices.Clone(s.have)}
}

// resumeRuleSums continues a sender's sums by rule from those of the previous process. Counts
// that arrived there are not missing here; they are treated like late arrivals. gap is the one
// between the two processes, which is not in a.gaps yet, or nil if there is none.
func (s *senders) resumeRuleSums(a *accounts, saved *snapshot.Sender, gap *openGap, h Handler) {
	if len(saved.ByRule.Have) == 0 || s.ruled.size == 0 {
		return // counts that arrived there count as missing
	}
	var arrived placeCounts
	for place, n := range saved.ByRule.Have[:min(s.ruled.size, len(saved.ByRule.Have))] {
		arrived = append(arrived, placeCount{place, n})
	}
	var l *lack
	if a.opening != nil {
		l = a.opening.lack
	}
	if l == nil {
		a.rules.seq = saved.ByRule.Seq
		a.rules.add(arrived, s.ruled.size)
		return
	}
	l.from = saved.ByRule.Seq
	l.subtract(arrived)
	a.reportLack(l, h)
	if gap != nil {
		gap.lack, gap.ByRule = l, l.joint()
	}
}

// forgetRules forgets the loss up to the first statement, because the rules changed.
func (o *opening) forgetRules() {
	if o != nil {
		o.lack = nil
	}
}
