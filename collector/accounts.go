package collector

import (
	"bytes"
	"time"

	"github.com/hotparam/hotparam/internal/floor"
	"github.com/hotparam/hotparam/wire"
)

// AccountSink is a [Sink] whose receiver reads accounts: hot keys and candidates are sent
// with what they have counted in all, so that it makes up for lost packets.
type AccountSink interface {
	// Accounts reports whether the receiver reads accounts.
	Accounts() bool
}

// account is a key's [wire.Account], and when it was sent last.
type account struct {
	wire.Account
	spoke   int64  // the start of the last line
	flush   uint32 // whose it was
	repeats uint8  // lines of 0 that are due
}

const (
	// keepAccount is how long after its last line an account is kept: longer than
	// is promised, as a receiver sees when a line was made, not when it was due.
	keepAccount = 5 * wire.AccountLife
	// accountRepeats is how many flushes after the last one with a count tell the
	// account again.
	accountRepeats = 3
	// coldAccounts is how many accounts are opened in a second for keys that are no
	// candidates, of rules with a jump: what such a key had before it rose is known then
	// although packets were lost. A receiver remembers many, but not any number.
	coldAccounts = 100
	// remindEvery is how often an account is told of a key that is hot or suspect,
	// whether or not it came: that what was lost meanwhile was none of its counts.
	remindEvery = time.Second
)

func (c *Collector) isKept(a *account) bool {
	return a.Number != 0 && c.start-a.spoke < int64(keepAccount)
}

// accountOf returns the account of a slot's key, or nil if it has none, and whether it has
// been opened now.
func (c *Collector) accountOf(s *shard, at int) (_ *account, isNew bool) {
	if !c.accounts {
		return nil, false
	}
	a, wanted := &s.accounts[at], c.candidate(&s.notes[at])
	switch {
	case a.Number != 0 && (wanted || c.isKept(a)):
	case wanted || c.opensCold(&s.notes[at]):
		c.opened++
		*a = account{Account: wire.Account{Number: c.opened}, spoke: c.start, flush: c.flushes - 1}
		return a, true
	default:
		*a = account{}
		s.repeats.unset(at) // a flood may have left no lines for them
		return nil, false
	}
	return a, false
}

// opensCold reports whether a key gets an account that is no candidate.
func (c *Collector) opensCold(k *note) bool {
	if !c.profiles.all[k.profile].jumps || !c.calm {
		return false
	}
	if second := floor.Div(c.start, int64(time.Second)); second != c.coldSecond {
		c.coldSecond, c.coldOpened = second, 0
	}
	c.coldOpened++
	return c.coldOpened <= coldAccounts
}

// book puts n counts on an account, which may be nil, and returns it as of then.
func (a *account) book(n uint64) wire.Account {
	if a == nil {
		return wire.Account{}
	}
	a.Total += n
	return a.Account
}

// recordAccount records that a slot's account is sent with its counts.
func (c *Collector) recordAccount(s *shard, at int, a *account) {
	if a != nil {
		a.spoke, a.flush, a.repeats = c.start, c.flushes, accountRepeats
		s.repeats.set(at)
	}
}

// repeatAccounts sends the accounts again that are due, as far as there are lines left.
func (c *Collector) repeatAccounts() {
	if !c.accounts {
		return
	}
	c.remindAccounts()
	left := c.budget.left() - len(c.counts) - len(c.parts) - len(c.heldBack)
	for i := range c.shards {
		s := &c.shards[i]
		t := s.table.Load()
		s.repeats.each(func(at int) {
			a := &s.accounts[at]
			if a.flush == c.flushes || left <= 0 && c.budget.lines >= 0 {
				return
			}
			left--
			rule, text, _ := bytes.Cut(t.key(&t.slots[at]), []byte{' '})
			c.counts = append(c.counts, Count{Rule: rule, Text: text, Account: a.Account})
			a.spoke, a.flush = c.start, c.flushes
			if a.repeats--; a.repeats == 0 {
				s.repeats.unset(at)
			}
		})
	}
}

// remindAccounts sends the accounts of all keys that are hot or suspect and whose account
// was not sent of late. A key that never came here gets an account too.
func (c *Collector) remindAccounts() {
	since := c.start - c.reminded
	if 0 <= since && since < int64(remindEvery) {
		return
	}
	c.reminded = c.start
	for hash, keys := range c.steered.keys {
		for i := range keys {
			s, member := c.shardOf(hash), []byte(keys[i].member)
			if s.table.Load().find(hash, member) < 0 {
				s.add(hash, member, 0) // if there is no room it is as before
			}
			t := s.table.Load()
			at := t.find(hash, member)
			if at < 0 {
				continue
			}
			k := &s.notes[at]
			if k.profile == unseen {
				c.classify(s, t, at)
			}
			switch a, isNew := c.accountOf(s, at); {
			case a == nil:
			case isNew:
				a.repeats = accountRepeats
				s.repeats.set(at)
			case a.repeats == 0 && c.start-a.spoke >= int64(remindEvery)*9/10:
				a.repeats = 1
				s.repeats.set(at)
			}
		}
	}
}
