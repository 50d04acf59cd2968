package decode

import "time"

// Count is a line: rule number Rule saw the key with this text N times, at When or soon
// after.
type Count struct {
	Rule int
	Hash uint64 // rules.Hash of the text
	Text []byte
	N    int64
	When time.Time
	// Skew is how much later than When the count may be of or, if it is negative, how much
	// earlier, because the sender's clock is not known better. It is zero if that is less than
	// half a flush, or more than 250 ms: what may be of that much later is Hidden.
	Skew time.Duration
	// Estimated reports whether N is an estimate from samples, of which Seen were counted.
	Estimated bool
	// InGroup says whether a [HeldBack] has already added the count to the total of the
	// key's group.
	InGroup InGroup
	Seen    int64
	// Instance is the sender's name, empty if its packet has none.
	Instance string
}

// InGroup says whether a count was reported as held back of its group before.
type InGroup uint8

// Values of InGroup.
const (
	NotInGroup InGroup = iota
	MaybeInGroup
	SurelyInGroup
)

// Handler receives what a decoder finds in packets.
type Handler interface {
	// Count receives one count. Its text is valid only during the call.
	Count(Count)
	// Hidden reports that counts of n in sum, of any keys, at when or soon after, will
	// never arrive.
	Hidden(when time.Time, n int64)
	// Held reports the most that all collectors together hide of any one key of a rule, in
	// its windows, by holding small counts back. untold is the part of collectors that do
	// not report what they hold back by group. Each call replaces the one before.
	Held(rule int, bound, untold int64)
	// HeldBack reports what is held back of a group.
	HeldBack(HeldBack)
	// Lost reports that packets of when or before are missing.
	Lost(when time.Time)
	// Found reports that missing packets arrived after all: those that are still missing
	// are of newest or before. The zero time means that none is.
	Found(newest time.Time)
	// Missing reports a gap, how much is missing, where senders report their sums. A gap is
	// reported again when less is missing.
	Missing(Gap)
	// Spare reports that a key has no count in a gap except on its account, and with
	// known=true none there either that is not counted yet.
	Spare(gap uint64, rule int, hash uint64, known bool)
	// Healed receives counts that were missing: they are of some time from c.When to until.
	Healed(c Count, until time.Time)
	// Moved receives counts that were reported by Healed, as of some time between from and
	// to, and whose packet arrived after all: they are of c.When.
	Moved(c Count, from, to time.Time)
}

// PacketHandler is a [Handler] that receives the counts of a packet together. A decoder then
// does not call its Count.
type PacketHandler interface {
	Handler
	// Counts receives counts that share their time and instance. They and their texts are
	// valid only during the call.
	Counts([]Count)
}

// Gap describes the counts of one sender that were lost on the way, as far as they are
// known. A gap is reported again under the same ID when some of its counts are found.
type Gap struct {
	ID       uint64
	From, To time.Time // of the missing counts
	// Loose is how many missing counts, of any keys, were on no account, and Booked how many
	// were on one. Keys that are spared lack none of the former.
	Loose, Booked int64
	// HeldBack is how much is missing of what was reported as held back of groups.
	HeldBack int64
	// ByRule bounds how many of them are of each rule, by two values at twice its number: of
	// loose counts, and of counts on accounts. Nil means that any may be of any rule.
	ByRule *Joint
	// Buckets bound how many of the loose ones of rules with a jump are of keys of each
	// bucket: the gap lacks no more than all of them together. If the first is nil, it is
	// unknown.
	Buckets [MaxBuckets]*Joint
}

// MaxBuckets is the most bounds by bucket that a [Gap] has.
const MaxBuckets = 4

// Joint bounds what gaps of a sender lack between two statements of its sums, by bucket or by
// rule. What is missing there is missing once, so all gaps that point to it together lack no more.
type Joint struct {
	Incarnation uint64 // of the sender, for [wire.BucketOf]
	Missing     []int64
}

func newJoint[N uint32 | uint64](incarnation uint64, missing []N) *Joint {
	j := &Joint{incarnation, make([]int64, len(missing))}
	for i, n := range missing {
		j.Missing[i] = int64(n)
	}
	return j
}

// HeldBack says that N counts of the keys of a group, of When or soon after, are held
// back by their sender: when they come they are in the group's total already.
type HeldBack struct {
	Rule  int
	Group []byte // as [base.AppendGroup], [base.AppendAgain] or [wire.Rest] have it
	N     int64
	When  time.Time
}
