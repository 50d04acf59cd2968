package limiter

import (
	"math"
)

// debt is what a key owes when a full table evicts it: bounds from above, so that of two debts
// the greater numbers are true for both. The first is the instant by which all is paid.
type debt [debtSize]int64

const (
	debtUntil = iota // when the key equals a new one
	debtAt           // a bucket's word, or the latest instant at which permits were taken
	debtCount        // permits, or how fast they come back: see speedOf
	debtLock         // when a penalty ends
	debtDue          // the latest instant for which permits are reserved; one for a stripe, as those below
	debtMark         // no line has a later mark
	debtSize
)

// speedOf returns the number by which a debt keeps the interval of a bucket: the greater the
// shorter.
func speedOf(interval int64) int64 { return math.MaxInt64 - interval }

// missing returns how many ns of a bucket's tokens are missing at t, where one token takes
// interval to earn.
func (d *debt) missing(t, interval int64) int64 {
	if d[debtAt] <= t {
		return 0
	}
	return rescaled(d[debtAt]-t, interval, math.MaxInt64-d[debtCount])
}

func (d *debt) merge(other *debt) {
	for i := range d {
		d[i] = max(d[i], other[i])
	}
}

// debts keeps what the evicted keys of a stripe owe, in memory that does not grow with their
// number. What it says that a key owes is never less than the truth: see sketch. Keys that owe
// nearly all of their limit are kept apart from the others, so that these do not raise what a
// key is said to owe that has most of its limit left. The lock of the stripe guards it.
type debts struct {
	width   int   // how many of a debt's numbers are kept
	keys    int   // the stripe has room for so many
	last    int64 // the latest instant seen
	until   int64 // by when all is paid
	due     int64 // no evicted key has a reservation after it
	marks   int64 // no line of an evicted key has a mark after it; of wordKeys those without back aside
	classes [2]*sketch
	r       *reckoning // the arithmetic of the words of wordKeys
}

// minDebtKeys keeps the sketches of small tables from being all collisions.
const minDebtKeys = 64

func newDebts(width, keys int) *debts { return &debts{width: width, keys: max(keys, minDebtKeys)} }

// tick records the instant. A clock that went back by more than maxBack is another clock, and all
// instants move with it.
func (d *debts) tick(t int64) {
	by := t - d.last
	if by >= -maxBack {
		d.last = max(d.last, t)
		return
	}
	d.last = t
	d.move(func(at int64) int64 { return max(at+by, 0) })
	d.marks, d.due = max(d.marks+by, 0), max(d.due+by, 0)
	for _, s := range d.classes {
		if s != nil && d.width > debtAt {
			for i := debtAt; i < len(s.cells); i += d.width {
				// A calendar's window may have another place on the new clock.
				s.cells[i] = max(s.cells[i]+by, t)
				s.cells[i-debtAt+debtLock] += by
			}
		}
	}
}

// move changes the instants by which all is paid, in an order-preserving way.
func (d *debts) move(to func(at int64) int64) {
	d.until = to(d.until)
	for _, s := range d.classes {
		if s == nil {
			continue
		}
		for i := 0; i < len(s.cells); i += d.width {
			if s.cells[i] > 0 {
				s.cells[i] = to(s.cells[i])
			}
		}
		s.recent.until, s.older.until = to(s.recent.until), to(s.older.until)
	}
}

// add adds what a key owes at t. Spent reports whether less than one permit is left to it.
func (d *debts) add(hash uint64, spent bool, owed *debt, t int64) {
	if owed[debtUntil] <= t {
		return
	}
	class := &d.classes[0]
	if spent {
		class = &d.classes[1]
	}
	if *class == nil {
		*class = newSketch(d.width, d.keys)
	}
	d.until, d.due = max(d.until, owed[debtUntil]), max(d.due, owed[debtDue])
	d.marks = max(d.marks, owed[debtMark])
	(*class).add(hash, owed, t)
}

// find returns what a key owes at t, and false if that is nothing.
func (d *debts) find(hash uint64, t int64) (owed debt, found bool) {
	if d == nil || d.until <= t {
		return debt{}, false
	}
	for _, s := range d.classes {
		if s != nil && s.has(hash, t) {
			of := s.find(hash)
			if of[debtUntil] > t {
				found = true
				owed.merge(&of)
			}
		}
	}
	if found {
		owed[debtDue], owed[debtMark] = d.due, d.marks
	}
	return owed, found
}

// count returns how many evicted keys owe something at t, or did when others last were evicted.
func (d *debts) count(t int64) (n int) {
	if d == nil {
		return 0
	}
	for _, s := range d.classes {
		if s == nil {
			continue
		}
		for _, f := range []*filter{&s.recent, &s.older} {
			if f.until > t {
				n += f.keys
			}
		}
	}
	return n
}
