package limiter

import (
	"math"
	"slices"
)

// debt holds upper bounds of a key's debt when a full table evicts it. So for two debts the
// greater numbers hold for both. The first number is the instant by which all is paid.
type debt [debtSize]int64

const (
	debtUntil = iota // instant at which the key equals a new one
	debtAt           // a bucket's word, or the latest instant at which permits were taken
	debtCount        // permits, or the speed at which they return: see speedOf
	debtLock         // end of a penalty
	debtDue          // the latest instant for which permits are reserved; one number per stripe, like the next
	debtMark         // a mark that no line exceeds
	debtSize
)

// speedOf returns the number that represents the interval of a bucket in a debt: the shorter
// the interval, the greater the number.
func speedOf(interval int64) int64 { return math.MaxInt64 - interval }

// missing returns the ns worth of tokens that a bucket with the debt lacks at t, where one
// token takes interval to earn.
func missing(owed []int64, t, interval int64) int64 {
	if owed[debtAt] <= t {
		return 0
	}
	return rescaled(owed[debtAt]-t, interval, math.MaxInt64-owed[debtCount])
}

func (d *debt) merge(other *debt) {
	for i := range d {
		d[i] = max(d[i], other[i])
	}
}

// debts keeps the debts of a stripe's evicted keys, in memory that does not grow with their
// number. The debt that it reports for a key is never less than the true one: see sketch. Keys
// that owe nearly all of their limit are kept apart from the others. So they do not raise the
// reported debt of a key that has most of its limit left. The lock of the stripe guards it.
type debts struct {
	keys    int    // number of keys that the stripe has room for
	last    int64  // the latest instant seen
	until   int64  // instant by which all is paid
	due     int64  // the latest instant for which an evicted key has a reservation
	marks   int64  // the greatest mark of a line of an evicted key
	family  family // family of the debts that were added last
	mixed   int64  // instant by which all debts of other families are paid
	classes [2]*sketch
}

// minDebtKeys prevents the sketches of small tables from being all collisions.
const minDebtKeys = 64

func newDebts(keys int) *debts { return &debts{keys: max(keys, minDebtKeys)} }

// tick advances the debts to t. A clock that went back by more than maxBack is another clock,
// and all instants move with it.
func (d *debts) tick(t int64) {
	leap := t - d.last
	if leap >= -maxBack {
		d.last = max(d.last, t)
		return
	}
	d.last = t
	moved := func(before int64) int64 { return max(before+leap, 0) }
	d.until, d.marks, d.due, d.mixed = moved(d.until), moved(d.marks), moved(d.due), moved(d.mixed)
	for _, s := range d.classes {
		if s == nil {
			continue
		}
		s.recent.until, s.older.until = moved(s.recent.until), moved(s.older.until)
		for cell := range slices.Chunk(s.cells, cellNumbers) {
			if cell[debtUntil] > 0 {
				cell[debtUntil] = moved(cell[debtUntil])
			}
			cell[debtAt] = max(cell[debtAt]+leap, t) // a calendar's window may have another place on the new clock
			cell[debtLock] += leap
		}
	}
}

// rescale makes the buckets of a family pay their debts at another rate from t on, where one
// token takes interval to earn. Debts that share a cell are rescaled by the fastest of their
// rates, so that none becomes less. While there are debts of other families, which keep their
// own rates, no debt is paid faster than before: cells do not distinguish families.
func (d *debts) rescale(family family, interval, t int64) {
	alone := d.family == family && d.mixed <= t
	latest := t
	for _, s := range d.classes {
		if s == nil {
			continue
		}
		for cell := range slices.Chunk(s.cells, cellNumbers) {
			isBucket := cell[debtCount] > speedOf(maxFill) // in a window it is a number of permits
			if isBucket && cell[debtUntil] > t && (alone || cell[debtCount] > speedOf(interval)) {
				// Reservations are used when they were promised: see line.
				promised := max(t, d.due)
				cell[debtAt] = max(t+missing(cell, t, interval), promised+missing(cell, promised, interval))
				cell[debtUntil] = max(cell[debtAt], cell[debtLock])
				cell[debtCount] = speedOf(interval)
			}
			latest = max(latest, cell[debtUntil])
		}
	}
	d.until = latest
	for _, s := range d.classes {
		if s == nil {
			continue
		}
		for _, f := range []*filter{&s.recent, &s.older} {
			if f.until > t {
				f.until = latest
			}
		}
	}
}

// add adds the debt of a key at t under a quota of the family. spent reports whether less than
// one permit is left to the key.
func (d *debts) add(hash uint64, family family, spent bool, owed *debt, t int64) {
	if owed[debtUntil] <= t {
		return
	}
	if d.family != family {
		d.family, d.mixed = family, d.until
	}
	class := &d.classes[0]
	if spent {
		class = &d.classes[1]
	}
	if *class == nil {
		*class = newSketch(d.keys)
	}
	d.until, d.due = max(d.until, owed[debtUntil]), max(d.due, owed[debtDue])
	d.marks = max(d.marks, owed[debtMark])
	(*class).add(hash, owed, t)
}

// findDebt returns the debt of a key at t, and whether there is one.
func (d *debts) findDebt(hash uint64, t int64) (owed debt, found bool) {
	if d == nil || d.until <= t {
		return debt{}, false
	}
	for _, s := range d.classes {
		if s != nil && s.has(hash, t) {
			bound := s.upperBound(hash)
			if bound[debtUntil] > t {
				found = true
				owed.merge(&bound)
			}
		}
	}
	if found {
		owed[debtDue], owed[debtMark] = d.due, d.marks
	}
	return owed, found
}

// count returns how many evicted keys owe something at t, or did when other keys were last
// evicted.
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
