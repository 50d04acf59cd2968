package decode

import (
	"github.com/hotparam/hotparam/wire"
)

// bucketSums are the newest statements of one sender's bucket sums, with the counts that have
// arrived between them. What the next statement has more is missing. A packet says between
// which statements it was made, so the order of arrival does not matter.
type bucketSums struct {
	newest uint64 // statement
	of     [wire.BucketStatements]statement
}

// statement is one statement of bucket sums. Sums are modulo [wire.BucketModulus].
type statement struct {
	number uint64
	known  bool // it has arrived
	loose  uint64
	sums   [wire.Buckets]uint32
	got    [wire.Buckets]uint32 // in packets from it up to the next
}

// looseCount is a count on no account, by the hash of its key.
type looseCount struct {
	hash uint64
	n    int64
}

// readBuckets records what a packet says of the bucket sums. mark is that of the receiver's
// rules. It returns the statements that packets between the newest one and this one can be of.
func (a *accounts) readBuckets(m *wire.Meta, mark uint32, h Handler) (first, last uint64) {
	var sums [wire.Buckets]uint32
	number, stated, ok := wire.ParseBuckets(&sums, m.Buckets, mark)
	if first = a.statement; m.Seq > a.seq {
		a.statement = number
	}
	if !ok || mark == 0 {
		a.buckets, a.statement = nil, 0 // the sender has other rules
		return 0, 0
	}
	if a.buckets == nil {
		a.buckets = &bucketSums{newest: number}
	}
	if last = number; stated {
		last-- // they were made before it
		if s := a.buckets.at(number); s != nil && !s.known {
			s.known, s.loose, s.sums = true, m.Sums.Loose, sums
			a.divide(h)
		}
	}
	return first, last
}

// addBuckets adds the loose counts of a packet to those that have arrived.
func (a *accounts) addBuckets(m *wire.Meta, mark uint32, counts []looseCount, h Handler) {
	if a.buckets == nil || len(counts) == 0 {
		return
	}
	number, _, ok := wire.ParseBuckets(nil, m.Buckets, mark)
	if !ok {
		return
	}
	s := a.buckets.at(number)
	if s == nil {
		return
	}
	for _, c := range counts {
		s.got[wire.BucketOf(c.hash, m.Incarnation)] += uint32(c.n)
	}
	if number < a.buckets.newest {
		a.divide(h)
	}
}

// divide reports to h how much of each bucket the gaps can lack, where that is less than was
// known.
func (a *accounts) divide(h Handler) {
	for i := range a.gaps {
		g := &a.gaps[i]
		if missing := a.buckets.between(g.first, g.last); missing != nil && g.lessByBucket(missing) {
			g.Incarnation = a.life
			h.Missing(g.snapshot())
		}
	}
}

// lessByBucket lowers how much is missing of each bucket, and reports whether it was more. The
// slice was passed to handlers, so it is replaced.
func (g *openGap) lessByBucket(missing []uint32) (less bool) {
	less = g.ByBucket == nil
	for i := range g.ByBucket {
		less = less || missing[i] < g.ByBucket[i]
		missing[i] = min(missing[i], g.ByBucket[i])
	}
	if less {
		g.ByBucket = missing
	}
	return less
}

// at returns a statement by its number, or nil if it is too old.
func (b *bucketSums) at(number uint64) *statement {
	if b.newest = max(b.newest, number); !b.remembers(number) {
		return nil
	}
	s := &b.of[number%wire.BucketStatements]
	if s.number != number {
		*s = statement{number: number}
	}
	return s
}

// remembers reports whether a number is one of the newest.
func (b *bucketSums) remembers(number uint64) bool { return b.newest-number < wire.BucketStatements }

// between returns how many counts are missing of each bucket in packets of the statements from
// first to last, or nil if that is unknown. It may include neighbours of these.
func (b *bucketSums) between(first, last uint64) []uint32 {
	var from, to *statement
	for i := range b.of {
		switch s := &b.of[i]; {
		case !s.known || !b.remembers(s.number):
		case s.number <= first && (from == nil || s.number > from.number):
			from = s
		case s.number > max(first, last) && (to == nil || s.number < to.number):
			to = s
		}
	}
	if from == nil || to == nil || to.loose-from.loose >= wire.BucketModulus {
		return nil
	}
	missing := make([]uint32, wire.Buckets)
	for i := range missing {
		missing[i] = to.sums[i] - from.sums[i]
	}
	for i := range b.of {
		if s := &b.of[i]; from.number <= s.number && s.number < to.number {
			for i := range missing {
				missing[i] -= s.got[i]
			}
		}
	}
	for i := range missing {
		missing[i] %= wire.BucketModulus
	}
	return missing
}
