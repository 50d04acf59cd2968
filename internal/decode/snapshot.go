package decode

import (
	"errors"
	"fmt"
	"time"

	"github.com/hotparam/hotparam/internal/snapshot"
)

// A restart is a loss of packets. [Decoder.Save] records how far the packets of each sender
// were counted, and [Decoder.Resume] continues from there in the next process. The difference
// to the sums of the first packet that this process receives is a gap, which lines with
// accounts heal.

// maxAccounts bounds the number of saved accounts, since the decoders wait during a save.
const maxAccounts = 1 << 16

// ErrOverlap is the error of [Decoder.Resume] if this process has counted packets that the
// other one counted, too.
var ErrOverlap = errors.New("this process has counted packets that the snapshot counts, too")

// CountsOf returns, by number, a text of everything that the counts of a rule depend on. Two
// processes with equal texts for a rule count it in the same way. The text of an unused number
// is empty.
func (n *Numbered) CountsOf() []string {
	all := make([]string, len(n.byNumber.Rules))
	for _, number := range n.numbers {
		r := &n.byNumber.Rules[number]
		all[number] = fmt.Sprintf("%q %q %v %v %v %q", r.ID, r.CountPrefix(n.inOrder.Namespace), r.Count, r.ParamsOnly, r.By.Kind, r.By.Names)
	}
	return all
}

// Save records in s how far the packets of each sender were counted. No decoder that shares
// the senders may be used during the call.
func (d *Decoder) Save(s *snapshot.Snapshot) {
	all := d.senders
	all.mu.Lock()
	defer all.mu.Unlock()
	s.Rules = all.rules.CountsOf()
	if last := all.plain.Load(); last != 0 {
		s.Plain = s.Cut.Sub(time.Unix(0, last)) < all.keep
	}
	s.Carried = make(map[uint64]bool)
	accounts := 0
	for name, from := range all.byName {
		a := &from.accounts
		if !a.sums.Stated || a.life != from.incarnation {
			continue
		}
		saved := snapshot.Sender{
			Name: name, Incarnation: a.life, Seq: a.seq, Sums: a.sums, Start: a.start, Heard: from.heard,
			First: min(a.first, a.seq), Opened: a.lastOpened(), Owed: a.owed,
			PrunedTo: a.pruned.to, PrunedOpened: a.pruned.opened, PrunedFrom: a.pruned.From,
			ByRule: a.rules.save(),
		}
		if a.resumed { // save the resumed state unchanged
			saved.Seq, saved.Since, saved.Carried = a.seq+1, a.owedSince, a.carriedOver
		} else if s.Cut.Sub(from.heard) <= silentAfter { // otherwise the next process does not wait for it
			saved.Carried = a.carryGaps(s.Cut, &saved.ByRule, s.Carried)
		}
		for i := range a.gaps {
			if g := &a.gaps[i]; g.Booked > 0 && (saved.Since.IsZero() || g.From.Before(saved.Since)) {
				saved.Since = savedTime(g.From)
			}
		}
		for key, k := range a.keys {
			if accounts++; accounts > maxAccounts {
				break
			}
			saved.Accounts = append(saved.Accounts, snapshot.AccountRange{
				Sender: len(s.Senders), Hash: key.hash, Rule: int(key.rule),
				Number: k.number, Low: k.low, High: k.high, Seq: k.knownTo(&saved.Carried), Heard: k.heard,
			})
		}
		s.Senders = append(s.Senders, saved)
	}
}

// Resume returns a function that continues from a snapshot whose keys have the current numbers
// of the rules. That function reports to h the loss between the two processes. started is the
// time when this process began to receive packets. No decoder that shares the senders may be
// used until resume has returned. An error means that the snapshot must not be used.
func (d *Decoder) Resume(s *snapshot.Snapshot, started, now time.Time) (resume func(h Handler), err error) {
	all := d.senders
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.plain.Load() != 0 && started.Before(s.Cut) {
		return nil, ErrOverlap
	}
	for i := range s.Senders {
		p := &s.Senders[i]
		if current := all.byName[p.Name]; current != nil && current.incarnation == p.Incarnation {
			if o := current.accounts.opening; o == nil || o.lowest <= p.Seq || current.accounts.began > 0 {
				return nil, ErrOverlap
			}
		}
	}
	return func(h Handler) { all.resume(s, started, now, h) }, nil
}
