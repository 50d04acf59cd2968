package decode

import "time"

// Count is the content of a line: rule number Rule saw the key with this text N times, at When
// or soon after.
type Count struct {
	Rule int
	Hash uint64 // rules.Hash of the text
	Text []byte
	N    int64
	When time.Time
	// Skew is by how much When may be too early or, if Skew is negative, too late, because the
	// sender's clock is not known better. It is zero if the error is less than half a flush. It
	// is also zero if When may be more than 250 ms too early: such counts are reported by
	// AddHiddenCounts.
	Skew time.Duration
	// Estimated reports whether N is an estimate from samples. Seen is the count in the samples.
	Estimated bool
	// InGroup reports whether a [HeldBack] has already added the count to the total of the
	// key's group.
	InGroup InGroup
	Seen    int64
	// Instance is the sender's name, empty if its packet has none.
	Instance string
}

// InGroup is whether a count was already reported as held back, as part of its group.
type InGroup uint8

// Values of InGroup.
const (
	NotInGroup InGroup = iota
	MaybeInGroup
	CertainlyInGroup
)

// Handler receives the results of a decoder.
type Handler interface {
	// Count receives one count. Its text is valid only during the call.
	Count(Count)
	// AddHiddenCounts reports that n counts, of any keys, at when or soon after, will never
	// arrive.
	AddHiddenCounts(when time.Time, n int64)
	// SetHeldBackBound reports the most that all collectors together hide of any one key of a
	// rule, in its windows, by holding small counts back. outsideGroups is the part of collectors
	// that do not report their held-back counts by group. Each call replaces the one before.
	SetHeldBackBound(rule int, bound, outsideGroups int64)
	// AddHeldBack reports counts of a group that their sender holds back.
	AddHeldBack(HeldBack)
	// RecordLoss reports that packets sent at when or before are missing.
	RecordLoss(when time.Time)
	// ReduceLoss reports that missing packets arrived after all. The packets still missing were
	// sent at newest or before. The zero time means that none is missing.
	ReduceLoss(newest time.Time)
	// RecordGap reports a gap and the size of its loss. It is called for senders that report
	// their sums, and again for the same gap when less is missing.
	RecordGap(Gap)
	// ExcludeFromGap reports that the gap hides no loose counts of the key. If counted is true,
	// the booked counts that the key lost in it have all been counted.
	ExcludeFromGap(gap uint64, rule int, hash uint64, counted bool)
	// AddHealedCount receives counts that were missing. Their time lies between c.When and until.
	AddHealedCount(c Count, until time.Time)
	// MoveHealedCount receives counts that AddHealedCount had received with a time between from
	// and to, and whose packet arrived after all. Their time is c.When.
	MoveHealedCount(c Count, from, to time.Time)
}

// PacketHandler is a [Handler] that receives the counts of a packet together. A decoder then
// does not call its Count.
type PacketHandler interface {
	Handler
	// Counts receives counts that share their time and instance. They and their texts are
	// valid only during the call.
	Counts([]Count)
}

// Gap describes the counts of one sender that were lost in transit, as far as they are known. A
// gap is reported again under the same ID when some of its counts are found.
type Gap struct {
	ID       uint64
	From, To time.Time // the time range of the missing counts
	// Loose is the number of missing counts that were on no account, of any keys. Booked is the
	// number that were on one. A key of ExcludeFromGap lacks no loose counts.
	Loose, Booked int64
	// HeldBack is the missing amount of counts reported as held back of groups.
	HeldBack int64
	// ByRule bounds the missing counts of each rule, by two values at twice the rule's number:
	// for loose counts and for booked ones. Nil means that any of them may belong to any rule.
	ByRule *Joint
	// Buckets bound the missing loose counts of rules with a jump, by bucket of keys. For a
	// bucket, the gap lacks at most the sum of them all. A nil first element means that no
	// bound is known.
	Buckets [MaxBuckets]*Joint
}

// MaxBuckets is the most bounds by bucket that a [Gap] has.
const MaxBuckets = 4

// Joint bounds the missing counts between two statements of a sender's sums, by bucket or by
// rule. All gaps that point to the same Joint share the bound: together they lack no more.
type Joint struct {
	Incarnation uint64 // incarnation of the sender, for [wire.BucketOf]
	Missing     []int64
}

func newJoint[N uint32 | uint64](incarnation uint64, missing []N) *Joint {
	j := &Joint{incarnation, make([]int64, len(missing))}
	for i, n := range missing {
		j.Missing[i] = int64(n)
	}
	return j
}

// HeldBack reports that the sender holds back N counts of the keys of a group, of When or soon
// after. When they arrive, the total of the group already includes them.
type HeldBack struct {
	Rule  int
	Group []byte // encoded by [base.AppendGroup], [base.AppendAgain] or [wire.Rest]
	N     int64
	When  time.Time
}
