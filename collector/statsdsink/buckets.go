package statsdsink

import (
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/wire"
)

// bucketSums are the sums of the loose counts of rules with a jump, by bucket of their keys.
type bucketSums struct {
	mark   uint32 // identifies these rules; 0 if no sums are stated
	sums   [wire.Buckets]uint32
	all    uint64    // the sum of all
	number uint64    // number of the last statement
	stated uint64    // value of all at the last statement
	start  time.Time // start of the flush that stated the sums
}

const (
	// bucketsFrom is the number of new counts from which the sums are stated with each flush.
	// The loss of fewer counts hides little of any key.
	bucketsFrom = wire.Buckets / 4
	// bucketsEvery is the interval at which the sums are stated with fewer counts.
	bucketsEvery = time.Second
)

// setRules sets the rules that the sums cover.
func (b *bucketSums) setRules(mark uint32) {
	if mark != b.mark {
		b.number += wire.BucketsLeap // so that no receiver compares with sums of other rules
		b.mark, b.start = mark, time.Time{}
	}
}

// add adds a loose count.
func (b *bucketSums) add(c *collector.Count, incarnation uint64) {
	b.sums[wire.BucketOf(wire.BucketHash(c.Text), incarnation)] += uint32(c.N)
	b.all += uint64(c.N)
}

// append appends the sums to a packet of a flush with this start if they are due, and otherwise
// only the number of the last statement. It appends nothing if no sums are stated. states reports
// whether it has appended the sums.
func (b *bucketSums) append(dst []byte, start time.Time) (_ []byte, states bool) {
	switch {
	case b.mark == 0:
		return dst, false
	case !b.isDue(start):
		return wire.AppendBuckets(dst, b.mark, b.number, nil), false
	}
	b.number++
	b.stated, b.start = b.all, start
	return wire.AppendBuckets(dst, b.mark, b.number, &b.sums), true
}

// isDue reports whether the sums are due in a flush with this start. They are not due in each
// packet, nor in urgent flushes, which have the start of the flush that follows.
func (b *bucketSums) isDue(start time.Time) bool {
	since := start.Sub(b.start).Abs() // Abs, since the clock may have been set back
	fresh := b.all - b.stated
	return b.start.IsZero() || since > 0 && fresh >= bucketsFrom || since >= bucketsEvery && fresh > 0
}
