package collector

import (
	"bytes"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/wire"
)

// keyAccount is a key's [wire.Account], with the time of its last line. While the account is kept,
// all counts of the key are sent with it, as the receiver was promised for [wire.AccountLife] after
// its last line. The keys of [Collector.Steer], hot keys and suspects, are called steered.
type keyAccount struct {
	wire.Account
	lastLine int64  // the start of the last line
	flush    uint32 // the flush of the last line
	repeats  uint8  // number of lines with a count of 0 that are due
}

const (
	// keepAccount is the time that an account is kept after its last line. It is longer than
	// promised, since a receiver only sees when a line was made.
	keepAccount = 5 * wire.AccountLife
	// accountRepeats is the number of flushes that send the account again after the last one
	// with a count.
	accountRepeats = 3
	// coldAccounts is the number of accounts opened per second for keys that are not candidates,
	// of rules with a jump. They show the receiver what such a key had before it rose, even if
	// packets were lost. The number is bounded because the receiver's memory is.
	coldAccounts = 100
	// remindEvery is the interval at which the account of a hot key or a suspect is sent even
	// without new counts. It shows that none of the key's counts were lost.
	remindEvery = time.Second
)

// isKept reports whether an account is still promised to the receiver.
func (c *Collector) isKept(a *keyAccount) bool {
	return a.Number != 0 && c.start-a.lastLine < int64(keepAccount)
}

// accountOf returns the account of a slot's key, or nil if it has none. isNew reports whether
// this call has opened the account.
func (c *Collector) accountOf(s *shard, slot int) (_ *keyAccount, isNew bool) {
	if !c.can.Accounts {
		return nil, false
	}
	a, wanted := &s.accounts[slot], c.candidate(&s.notes[slot])
	switch {
	case a.Number != 0 && (wanted || c.isKept(a)):
	case wanted || c.takeColdAccount(&s.notes[slot]):
		c.opened++
		*a = keyAccount{Account: wire.Account{Number: c.opened}, lastLine: c.start, flush: c.flushes - 1}
		return a, true
	default:
		*a = keyAccount{}
		s.repeats.remove(slot) // repeats may be due, if a flood left no lines for them
		return nil, false
	}
	return a, false
}

// takeColdAccount takes one of the second's accounts for keys that are not candidates, and reports
// whether one was left.
func (c *Collector) takeColdAccount(k *note) bool {
	if !c.profiles.all[k.profile].jumps || !c.calm {
		return false
	}
	if second := base.FloorDiv(c.start, int64(time.Second)); second != c.coldSecond {
		c.coldSecond, c.coldOpened = second, 0
	}
	c.coldOpened++
	return c.coldOpened <= coldAccounts
}

// addCounts adds n counts to an account, which may be nil, and returns its present state.
func (a *keyAccount) addCounts(n uint64) wire.Account {
	if a == nil {
		return wire.Account{}
	}
	a.Total += n
	return a.Account
}

// recordAccount records that a slot's account is sent with its counts.
func (c *Collector) recordAccount(s *shard, slot int, a *keyAccount) {
	if a != nil {
		a.lastLine, a.flush, a.repeats = c.start, c.flushes, accountRepeats
		s.repeats.add(slot)
	}
}

// repeatAccounts sends the accounts that are due again. The accounts of hot keys and suspects
// have reserved lines; others use the remaining lines.
func (c *Collector) repeatAccounts() {
	if !c.can.Accounts {
		return
	}
	for _, isSteered := range [...]bool{true, false} {
		left := c.budget.linesLeft() - len(c.counts) - len(c.parts) - len(c.heldBack)
		for i := range c.shards {
			s := &c.shards[i]
			t := s.table.Load()
			s.repeats.each(func(slot int) {
				a, k := &s.accounts[slot], &s.notes[slot]
				if a.flush == c.flushes || (k.flags != 0) != isSteered || !isSteered && left <= 0 && c.budget.lines >= 0 {
					return
				}
				left--
				rule, text, _ := bytes.Cut(t.key(&t.slots[slot]), []byte{' '})
				c.counts = append(c.counts, Count{Rule: rule, Text: text, Account: a.Account})
				a.lastLine, a.flush = c.start, c.flushes
				if a.repeats--; a.repeats == 0 {
					s.repeats.remove(slot)
				}
			})
		}
	}
}

// remindAccounts makes the accounts of hot keys and suspects due if they were not sent lately.
// It reserves lines for the ones that this flush repeats, so that a flood does not hide that no
// counts of a hot key were lost. A key that this instance has never seen gets an account too.
func (c *Collector) remindAccounts() {
	if !c.can.Accounts {
		return
	}
	c.remindSteered()
	for i := range c.shards {
		s := &c.shards[i]
		s.repeats.each(func(slot int) {
			if k := &s.notes[slot]; k.flags != 0 && k.total() == 0 {
				c.budget.must++
			}
		})
	}
}

// remindSteered makes the accounts due that were not sent lately, once per [remindEvery]. A
// key with unsent counts is sent with its account in any case.
func (c *Collector) remindSteered() {
	since := c.start - c.reminded
	if 0 <= since && since < int64(remindEvery) {
		return
	}
	c.reminded = c.start
	for hash, keys := range c.steered.keys {
		for i := range keys {
			s, member := c.shardOf(hash), []byte(keys[i].member)
			if s.table.Load().findSlot(hash, member) < 0 {
				s.add(hash, member, 0) // without room the key has no account
			}
			t := s.table.Load()
			slot := t.findSlot(hash, member)
			if slot < 0 {
				continue
			}
			k := &s.notes[slot]
			if k.profile == unseen {
				c.classify(s, t, slot)
			}
			if k.total() > 0 {
				continue
			}
			switch a, isNew := c.accountOf(s, slot); {
			case a == nil:
			case isNew:
				a.repeats = accountRepeats
				s.repeats.add(slot)
			// A tenth less, so that a line sent just after the last reminder does not delay the
			// next one by a whole interval.
			case a.repeats == 0 && c.start-a.lastLine >= int64(remindEvery)*9/10:
				a.repeats = 1
				s.repeats.add(slot)
			}
		}
	}
}
