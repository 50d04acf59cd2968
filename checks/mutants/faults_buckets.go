package mutants

// bucketFaults are faults in jumps under loss: in the sums by bucket and in the opening of
// accounts. The last ones are in the bounds that are published after a loss.
var bucketFaults = []Fault{
	{
		Name: "an account is opened late, by the next reminder", File: "collector/steer.go",
		Old: "c.steered, c.reminded = next, 0", New: "c.steered = next",
		Test: "TestSuspectsHaveAnAccountAtOnce",
	},
	{
		Name: "an account is opened late, by the second line", File: "collector/accounts.go",
		Old: "case wanted || c.takeColdAccount", New: "case wanted && s.notes[slot].sent != s.since || c.takeColdAccount",
		Test: "TestSuspectsHaveAnAccountAtOnce",
	},
	{
		Name: "bucket sums hold counts on accounts", File: "collector/statsdsink/packer.go",
		Old: "sums.Booked += n", New: "sums.Booked += n\n\t\tp.buckets.add(c, p.head.Incarnation)",
		Test: "TestPacketsStateBucketSums",
	},
	{
		Name: "sums of other rules are compared", File: "collector/statsdsink/buckets.go",
		Old: "b.number += wire.BucketsLeap", New: "",
		Test: "TestBucketSumsOfOtherRules",
	},
	{
		Name: "a bucket is the same of all senders", File: "internal/wire/bucketsums.go",
		Old: "fold(hash^incarnation, bucketFactor)", New: "fold(hash+0*incarnation, bucketFactor)",
		Test: "TestBucketsSpread",
	},
	{
		Name: "counts behind a statement are taken for those before it", File: "internal/decode/bucketsums.go",
		Old: "number < to.number; number++", New: "number <= to.number; number++",
		Test: "TestBucketSumsBoundWhatIsMissing",
	},
	{
		Name: "a gap is of the statement of the packet behind it", File: "internal/decode/bucketsums.go",
		Old: "if first = a.statement; m.Seq", New: "if first = number; m.Seq",
		Test: "TestBucketSumsBoundWhatIsMissing",
	},
	{
		Name: "a gap lacks of each bucket what it lacks of the first", File: "aggregator/internal/window/joint.go",
		Old: "j.Missing[wire.BucketOf(hash, j.Incarnation)]", New: "j.Missing[0*wire.BucketOf(hash, j.Incarnation)]",
		Package: "aggregator", Test: "TestABaselineLacksWhatItsBucketLacks",
	},
	{
		Name: "each gap between the same statements lacks all of the bucket", File: "aggregator/internal/window/joint.go",
		Old: "	j.left[part] -= n\n", New: "",
		Package: "aggregator", Test: "TestABaselineLacksWhatItsBucketLacks",
	},
	{
		Name: "a gap that reaches over a statement lacks what is before it", File: "aggregator/internal/window/shortfall.go",
		Old: "range x.buckets {", New: "range x.buckets[:1] {",
		Package: "aggregator", Test: "TestABaselineLacksWhatItsBucketLacks",
	},
	{
		Name: "gaps between the same statements share no bound", File: "internal/decode/bucketsums.go",
		Old: "from.missing == nil || from.until", New: "true || from.until",
		Test: "TestBucketSumsBoundWhatIsMissing",
	},
	{
		Name: "after a lost statement nothing is known by bucket", File: "internal/decode/bucketsums.go",
		Old: "b.before = *s", New: "b.before = statement{}",
		Test: "TestBucketSumsBoundWhatIsMissing",
	},
	{
		Name: "counts behind a lost statement count as missing", File: "internal/decode/bucketsums.go",
		Old: "b.before.arrived[i] += n", New: "b.before.arrived[i] += 0 * n",
		Test: "TestBucketSumsBoundWhatIsMissing",
	},
	{
		Name: "sums of before the rules changed are compared", File: "internal/decode/bucketsums.go",
		Old: "newest-b.newest >= wire.BucketsLeap", New: "false",
		Test: "TestNoBucketsAcrossALeap",
	},
	{
		Name: "records do not state what was dropped before them", File: "collector/kafkasink/pack.go",
		Old: "h.sums.Loose += uint64(r.sum - r.booked)", New: "",
		Test: "TestOutage",
	},
	{
		Name: "windows of other rules have buckets", File: "aggregator/internal/window/bounds.go",
		Old: "if !w.bucketed {", New: "if false {",
		Package: "aggregator", Test: "TestABaselineLacksWhatItsBucketLacks",
	},
	{
		Name: "after a loss the newest window is published", File: "aggregator/hot.go",
		Old: "clearFor = 500", New: "clearFor = 0",
		Test: "TestPublishedBoundsAreOfAClearWindow",
	},
	{
		Name: "a window that is over hides why a key is hot", File: "aggregator/hot.go",
		Old: " || h.Low < w.need() ||", New: " ||",
		Test: "TestPublishedBoundsAreNotOfBefore",
	},
	{
		Name: "a repeated account without counts says nothing", File: "internal/decode/settle.go",
		Old: "(e.N > 0 || e.Total < k.high):", New: "true:",
		Test: "TestAccounts",
	},
}
