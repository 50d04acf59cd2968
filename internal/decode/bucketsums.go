package decode

import (
	"github.com/hotparam/hotparam/internal/wire"
)

// bucketSums are the newest statements of one sender's bucket sums, with the counts that have
// arrived between them. The increase from one statement to the next, less the counts that
// arrived in between, is missing. A packet names the statements between which it was made, so
// the order of arrival does not matter.
type bucketSums struct {
	newest     uint64                // number of the newest statement
	statements [MaxBuckets]statement // the newest statements, by number
	before     statement             // the newest known statement that is older; not known if there is none
}

// statement is one statement of bucket sums. Sums are modulo [wire.BucketModulus].
type statement struct {
	number  uint64
	known   bool // whether it has arrived
	loose   uint64
	sums    [wire.Buckets]uint32
	arrived [wire.Buckets]uint32 // counts that arrived in packets from it up to the next statement

	missing  *Joint // loss from it up to the next known statement, as last reported
	reported [wire.Buckets]uint32
	until    uint64 // number of that next statement
}

// looseCount is a count on no account, by the bucket of its key.
type looseCount struct{ bucket, n uint32 }

// readBuckets records a packet's part about the bucket sums. mark is that of the receiver's
// rules. It returns the range of statements that packets between the newest one and this one
// may belong to. stated reports whether a statement is new, so that gaps can be divided.
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
	s := a.buckets.statementFor(number)
	if stated = s != nil && !s.known; stated {
		_, _, s.known = wire.ParseBuckets(&s.sums, m.Buckets, mark)
		s.loose = m.Sums.Loose
	}
	return first, number - 1, stated // packets before this one were made before its statement
}

// addBuckets records the arrival of a packet's loose counts.
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
	s := a.buckets.statementFor(number)
	if s == nil {
		return
	}
	for _, c := range counts {
		s.arrived[c.bucket] += c.n
	}
	if number < a.buckets.newest {
		a.divideByBucket(h)
	}
}

// divideByBucket reports to h the loss by bucket that gaps share, where the bound became lower.
func (a *accounts) divideByBucket(h Handler) {
	if a.buckets == nil {
		return
	}
	for i := len(a.gaps) - 1; i >= 0 && a.buckets.remembers(a.gaps[i].first); i-- {
		g := &a.gaps[i]
		if missing, ok := a.buckets.lossBetween(g.first, g.last, a.life); ok && missing != g.Buckets {
			g.Buckets = missing
			h.RecordGap(g.Gap)
		}
	}
}

// statementFor returns the statement that the counts of a packet with its number are added to,
// or nil if it is too old.
func (b *bucketSums) statementFor(number uint64) *statement {
	b.advance(number)
	switch {
	case !b.remembers(number):
		return nil
	case b.newest-number >= MaxBuckets:
		return &b.before
	}
	s := &b.statements[number%MaxBuckets]
	if s.number != number {
		*s = statement{number: number}
	}
	return s
}

// advance makes a statement the newest, if it is newer. A statement older than MaxBuckets that
// has not arrived is dropped: its counts join the statement before it, and losses on both of
// its sides lie between its neighbours.
func (b *bucketSums) advance(newest uint64) {
	if newest <= b.newest {
		return
	}
	for number := b.newest - min(b.newest, MaxBuckets-1); number <= b.newest && newest-number >= MaxBuckets; number++ {
		switch s := &b.statements[number%MaxBuckets]; {
		case s.number != number:
		case s.known:
			b.before = *s
		default:
			for i, n := range s.arrived {
				b.before.arrived[i] += n
			}
		}
	}
	if newest-b.newest >= wire.BucketsLeap {
		b.before = statement{}
	}
	b.newest = newest
}

// remembers reports whether the sums at a statement, or at a known one before it, are known.
func (b *bucketSums) remembers(number uint64) bool {
	return b.newest-number < MaxBuckets || b.before.known && b.before.number <= number
}

// lossBetween returns the loss from each known statement to the next, over the range in which
// packets of the statements from first to last can be. ok is false if that is unknown.
func (b *bucketSums) lossBetween(first, last, incarnation uint64) (missing [MaxBuckets]*Joint, ok bool) {
	var from *statement
	if b.before.known && b.before.number <= first {
		from = &b.before
	}
	n := 0
	for number := b.newest - min(b.newest, MaxBuckets-1); number <= b.newest; number++ {
		s := &b.statements[number%MaxBuckets]
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

// missing returns the loss from one statement to the next known one, or nil if it may exceed
// the modulus of the sums. It returns the same pointer while the loss is unchanged.
func (b *bucketSums) missing(from, to *statement, incarnation uint64) *Joint {
	if to.loose-from.loose >= wire.BucketModulus {
		return nil
	}
	var missing [wire.Buckets]uint32
	for i := range missing {
		missing[i] = to.sums[i] - from.sums[i]
	}
	subtract := func(s *statement) {
		for i, n := range s.arrived {
			missing[i] -= n
		}
	}
	if from == &b.before {
		subtract(from)
	}
	for number := max(from.number, b.newest-min(b.newest, MaxBuckets-1)); number < to.number; number++ {
		if s := &b.statements[number%MaxBuckets]; s.number == number {
			subtract(s)
		}
	}
	for i := range missing {
		missing[i] %= wire.BucketModulus
	}
	if from.missing == nil || from.until != to.number || from.reported != missing { // handlers keep the pointer, so a changed value needs another
		from.missing, from.until, from.reported = newJoint(incarnation, missing[:]), to.number, missing
	}
	return from.missing
}
