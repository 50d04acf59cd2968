package mutants

// Faults in the conversion of a sender's times to the aggregator's, and in what is known when senders
// or Kafka were unavailable.

var clockFaults = []Fault{
	{
		Name: "a count's skew is lost on its line", File: "internal/decode/lines.go",
		Old: "c.When, c.Instance, c.InGroup, c.Skew = common.When, common.Instance, common.InGroup, common.Skew", New: "c.When, c.Instance, c.InGroup = common.When, common.Instance, common.InGroup",
		Test: "TestSkewHoldsWhereCountsAre|TestSkewOfNewSenders",
	},
	{
		Name: "the delay of a new sender's packets is taken for a slow clock", File: "internal/decode/clock.go",
		Old: "over > 0 && isNew", New: "false && isNew",
		Test: "TestSkewOfNewSenders",
	},
	{
		Name: "bounds leave out no counts of fast clocks", File: "aggregator/skew.go",
		Old: "				out += p.earlier\n", New: "",
		Test: "TestBoundsHoldWhateverClocksAreWithin",
	},
	{
		Name: "bounds of a key that has just become hot are sure of its counts", File: "aggregator/skew.go",
		Old: "	out += part(max(first, last-later+1), last) + part(first, min(last, first+earlier-1))\n", New: "",
		Test: "TestFirstBoundsOfASkewedKey|TestBoundsHoldWhateverClocksAreWithin",
	},
	{
		Name: "one clock that is off makes all counts of a key doubtful", File: "aggregator/skew.go",
		Old: "unrecorded = w.skews.from - 1", New: "_ = w.skews.from",
		Test: "TestOneClockWidensBoundsByItsCounts",
	},
	{
		Name: "a clock's offset is taken from when counts began", File: "internal/decode/offsets.go",
		Old: "c.observe(m.Sent, steady, life)", New: "c.observe(m.Start, steady, life)",
		Test: "TestClocks|TestDoubtfulCountsAreHidden",
	},
	{
		Name: "a clock's offset is the newest age in place of the least", File: "internal/decode/clock.go",
		Old: "min(*newest, age), min(c.least, age)", New: "age, age",
		Test: "TestClocks",
	},
	{
		Name: "a clock's offset is believed from a backlog", File: "internal/decode/clock.go",
		Old: "c.isSteady(age, when)", New: "(c.isSteady(age, when) || true)",
		Test: "TestClocks",
	},
	{
		Name: "a clock's offset is never forgotten", File: "internal/decode/clock.go",
		Old: "\t\t\tc.ages[ring.Slot(c.slot, clockSlots)] = noAge\n", New: "",
		Test: "TestClocks",
	},
	{
		Name: "a clock that is set back goes unnoticed", File: "internal/decode/clock.go",
		Old: "wasSet := c.sent-sent > int64(clockSlack)", New: "wasSet := false",
		Test: "TestClocks",
	},
	{
		Name: "a packet that was overtaken tells of the clock", File: "internal/decode/offsets.go",
		Old: "if life || m.Seq > from.last {", New: "{",
		Test: "TestClocks",
	},
	{
		Name: "an offset that is known is not taken off", File: "internal/decode/offsets.go",
		Old: "return start.Add(offset)\n}", New: "return start\n}",
		Test: "TestClocks",
	},
	{
		Name: "the aggregator's own clock is not steadied", File: "internal/decode/offsets.go",
		Old: "steady, set := s.steady(now)", New: "steady, set := now, time.Duration(0)",
		Test: "TestOwnClockIsSet",
	},
	{
		Name: "counts of a clock that is in doubt hide nothing", File: "internal/decode/lines.go",
		Old: "if from.doubt > 0 && sum > 0 {", New: "if false {",
		Test: "TestDoubtfulCountsAreHidden",
	},
	{
		Name: "a count in doubt is of a time to come", File: "internal/decode/packet.go",
		Old: "s.doubt = min(s.doubt, now.Sub(c.When))", New: "_ = s.doubt",
		Test: "TestNothingIsOfATimeToCome",
	},
	{
		Name: "a gap's times are not corrected when the clock was set", File: "internal/decode/gaps.go",
		Old: "wasSet := last.Before(a.start) || last.After(start)", New: "wasSet := false",
		Test: "TestGapsAreByTheRightClock",
	},
	{
		Name: "a clock that is off is named each second", File: "internal/decode/clocklog.go",
		Old: "!isNamed || (c.Behind-was).Abs()", New: "!isNamed || true || (c.Behind-was).Abs()",
		Test: "TestClockLog",
	},
	{
		Name: "a sender's stamp is taken for a broker's", File: "internal/kafkasource/record.go",
		Old: "r.Attrs.TimestampType() == appendTime\n", New: "true\n",
		Test: "TestClocksOfRecords",
	},
	{
		Name: "a time in which Kafka is away is an absence of the instances", File: "internal/kafkasource/watermark.go",
		Old: "min(heard.Sub(w.heard), maxPause)", New: "heard.Sub(w.heard)",
		Test: "TestWatermark|TestABreakIsNobodysAbsence",
	},
	{
		Name: "the first instance to return is taken for all", File: "internal/kafkasource/watermark.go",
		Old: "if p.heard.Before(w.resumed) {", New: "if false && p.heard.Before(w.resumed) {",
		Test: "TestABreakIsNobodysAbsence",
	},
	{
		Name: "a worker that starts after an outage knows no instances", File: "internal/kafkasource/work.go",
		Old: "w.mark.setKnown(*live)", New: "w.mark.setKnown(nil)",
		Test: "TestABreakIsNobodysAbsence",
	},
	{
		Name: "an aggregator that starts in an outage awaits nobody", File: "internal/kafkasource/watermark.go",
		Old: "unknown: true,", New: "unknown: false,",
		Test: "TestABreakIsNobodysAbsence",
	},
	{
		Name: "keys are published that were hot before a take-over", File: "internal/kafkasource/adopt.go",
		Old: "w.report.adopted && w.report.covered && ", New: "w.report.adopted && ",
		Test: "TestTakeOverTellsNothingOld",
	},
}
