package decode

import (
	"github.com/hotparam/hotparam/internal/wire"
)

// bucketSums are the newest statements of one sender's bucket sums, with the counts that have
// arrived between them. What the next statement has more is missing. A packet says between
// which statements it was made, so the order of arrival does not matter.
type bucketSums struct {
	newest uint64                // statement
	of     [MaxBuckets]statement // the newest, by number
	before statement             // the newest known one that is older; not known if there is none
}

// statement is one statement of bucket sums. Sums are modulo [wire.BucketModulus].
type statement struct {
	number uint64
	known  bool // it has arrived
	loose  uint64
	sums   [wire.Buckets]uint32
	got    [wire.Buckets]uint32 // in packets from it up to the next

	missing *Joint // from it up to the next known one, as reported last
	told    [wire.Buckets]uint32
	until   uint64 // that one's number
}

// looseCount is a count on no account, by the bucket of its key.
type looseCount struct{ bucket, n uint32 }

// readBuckets records what a packet says of the bucket sums. mark is that of the receiver's
// rules. It returns the statements that packets between the newest one and this one can be of,
// and whether it learned of a statement, so that gaps can be divided.
func (a *accounts) readBuckets(m *wire.Meta, mark uint32) (first, last uint64, stated bool) {
	if mark == 0 {
		return 0, 0, false
	}
	number, stated, ok := wire.ParseBuckets(nil, m.Buckets, mark)
	if first = a.statement; m.Seq > a.seq {
		a.statement, a.statementOf = number, m.Seq
	}
	if !ok {
		a.buckets, a.statement, a.statementOf = nil, 0, 0 // the sender has other rules
		return 0, 0, false
	}
	if a.buckets == nil {
		a.buckets = &bucketSums{newest: number}
	}
	if !stated {
		return first, number, false
	}
	s := a.buckets.at(number)
	if stated = s != nil && !s.known; stated {
		_, _, s.known = wire.ParseBuckets(&s.sums, m.Buckets, mark)
		s.loose = m.Sums.Loose
	}
	return first, number - 1, stated // they were made before it
}

// addBuckets adds the loose counts of a packet to those that have arrived.
func (a *accounts) addBuckets(m *wire.Meta, mark uint32, counts []looseCount, h Handler) {
	if a.buckets == nil || len(counts) == 0 {
		return
	}
	number := a.statement
	if m.Seq != a.statementOf {
		var ok bool
		if number, _, ok = wire.ParseBuckets(nil, m.Buckets, mark); !ok {
			return
		}
	}
	s := a.buckets.at(number)
	if s == nil {
		return
	}
	for _, c := range counts {
		s.got[c.bucket] += c.n
	}
	if number < a.buckets.newest {
		a.divide(h)
	}
}

// divide reports to h how much of each bucket the gaps lack together, where that is less than
// was known.
func (a *accounts) divide(h Handler) {
	if a.buckets == nil {
		return
	}
	for i := len(a.gaps) - 1; i >= 0 && a.buckets.remembers(a.gaps[i].first); i-- {
		g := &a.gaps[i]
		if missing, ok := a.buckets.between(g.first, g.last, a.life); ok && missing != g.Buckets {
			g.Buckets = missing
			h.Missing(g.Gap)
		}
	}
}

// at returns the statement that the counts of a packet with its number are added to, or nil
// if it is too old.
func (b *bucketSums) at(number uint64) *statement {
	b.advance(number)
	switch {
	case !b.remembers(number):
		return nil
	case b.newest-number >= MaxBuckets:
		return &b.before
	}
	s := &b.of[number%MaxBuckets]
	if s.number != number {
		*s = statement{number: number}
	}
	return s
}

// advance makes a statement the newest, if it is newer. An older statement that has not arrived
// by then does not count: what was missing around it lies between the two beside it.
func (b *bucketSums) advance(newest uint64) {
	if newest <= b.newest {
		return
	}
	for number := b.newest - min(b.newest, MaxBuckets-1); number <= b.newest && newest-number >= MaxBuckets; number++ {
		switch s := &b.of[number%MaxBuckets]; {
		case s.number != number:
		case s.known:
			b.before = *s
		default:
			for i, n := range s.got {
				b.before.got[i] += n
			}
		}
	}
	if newest-b.newest >= wire.BucketsLeap {
		b.before = statement{}
	}
	b.newest = newest
}

// remembers reports whether the sums at a statement, or a known one before it, are remembered.
func (b *bucketSums) remembers(number uint64) bool {
	return b.newest-number < MaxBuckets || b.before.known && b.before.number <= number
}

// between returns what is missing from each known statement to the next, where packets of the
// statements from first to last can be. ok is false if that is unknown.
func (b *bucketSums) between(first, last, incarnation uint64) (missing [MaxBuckets]*Joint, ok bool) {
	var from *statement
	if b.before.known && b.before.number <= first {
		from = &b.before
	}
	n := 0
	for number := b.newest - min(b.newest, MaxBuckets-1); number <= b.newest; number++ {
		s := &b.of[number%MaxBuckets]
		if s.number != number || !s.known {
			continue
		}
		switch {
		case number <= first:
		case from == nil:
			return missing, false
		default:
			if missing[n] = b.missing(from, s, incarnation); missing[n] == nil {
				return missing, false
			}
			n++
		}
		if from = s; number > max(first, last) {
			return missing, true
		}
	}
	return missing, false
}

// missing returns what is missing from one statement to the next known one, or nil if it can be
// too much to tell. The pointer stays the same while that does.
func (b *bucketSums) missing(from, to *statement, incarnation uint64) *Joint {
	if to.loose-from.loose >= wire.BucketModulus {
		return nil
	}
	var missing [wire.Buckets]uint32
	for i := range missing {
		missing[i] = to.sums[i] - from.sums[i]
	}
	subtract := func(s *statement) {
		for i, n := range s.got {
			missing[i] -= n
		}
	}
	if from == &b.before {
		subtract(from)
	}
	for number := max(from.number, b.newest-min(b.newest, MaxBuckets-1)); number < to.number; number++ {
		if s := &b.of[number%MaxBuckets]; s.number == number {
			subtract(s)
		}
	}
	for i := range missing {
		missing[i] %= wire.BucketModulus
	}
	if from.missing == nil || from.until != to.number || from.told != missing { // handlers keep the last one, so it is replaced
		from.missing, from.until, from.told = newJoint(incarnation, missing[:]), to.number, missing
	}
	return from.missing
}
