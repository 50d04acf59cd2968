package mutants

// Faults from requests to lines: in counting and its statistics.

var keyFaults = []Fault{
	{
		Name: "secrets within values are in keys where escaped twice", File: "rules/mask.go",
		Old: "const maxEscapes = 3", New: "const maxEscapes = 1",
		Test: "TestSecretsWithinValues",
	},
	{
		Name: "a query with a secret in a value takes the short way", File: "rules/plainquery.go",
		Old: "raw[pos] == '%' && hidesByte(raw[pos+1:])", New: "false",
		Test: "TestNoKeyHasASecretWithinAValue",
	},
	{
		Name: "merged packets are read as one", File: "internal/statsdsource/receive_linux.go",
		Old: "\t\t\t\tlength = n\n", New: "",
		Test: "TestReadersReportWhatPacketsSay|TestReceiverTakesMergedPackets",
	},
	{
		Name: "a short packet behind merged ones is dropped", File: "internal/statsdsource/reader.go",
		Old: "|| len(message) == 0", New: "|| len(message) < length",
		Test: "TestReadersReportWhatPacketsSay|TestReceiverTakesMergedPackets",
	},
	{
		Name: "parameters are not sorted by value", File: "rules/normalise.go",
		Old: "strings.Compare(a.value(), b.value()); c != 0", New: "0; c != 0",
		Test: "TestSortIsByDecodedNameValueAndSource",
	},
	{
		Name: "parameters are not sorted by name", File: "rules/normalise.go",
		Old: "j > 0 && less(", New: "j > 0 && false && less(",
		Test: "TestSortIsByDecodedNameValueAndSource",
	},
	{
		Name: "an escape in a path is not normalised", File: "rules/escape.go",
		Old: "unhex(path[i:]); ok {", New: "unhex(path[i:]); ok && false {",
		Test: "TestAppendPath",
	},
	{
		Name: "an escape in a query is not decoded", File: "rules/escape.go",
		Old: "unhex(s[i:]); ok {", New: "unhex(s[i:]); ok && false {",
		Test: "TestCanonicalQuery",
	},
	{
		Name: "a repeated parameter counts twice", File: "rules/values.go",
		Old: "return i > 0 && p.list[i].equal(&p.list[i-1])", New: "return false",
		Test: "TestCombinations|TestSinglesAreTheFirstValuesOfEachName",
	},
	{
		Name: "a secret is part of a key", File: "rules/normalise.go",
		Old: "if q.isHidden(secrets) {", New: "if false {",
		Test: "TestAppendAllLeavesSecretsOut",
	},
	{
		Name: "a redacted value is the same under another name", File: "rules/redact.go",
		Old: "append(appendEscaped(r.buf, name), '=')", New: "append(r.buf, '=')",
		Test: "TestRedactedValuesAreThoseOfOpenSSL",
	},
	{
		Name: "the short way sends values that are redacted", File: "middleware/redact.go",
		Old: "r.redacts = slices", New: "r.redacts = false && slices",
		Test: "TestShortWayRedacts",
	},
	{
		Name: "exceptions are compared with redacted values", File: "middleware/except.go",
		Old: "if c.reveals {", New: "if false {",
		Test: "TestRulesCompareBeforeRedaction",
	},
	{
		Name: "a path without a template is sent with a redacted value", File: "middleware/key.go",
		Old: "r.route.set.redaction.Concerns(rules.Path)", New: "false",
		Test: "TestNoPlainValueLeaves",
	},
	{
		Name: "a pattern for plain values exempts redacted ones", File: "aggregator/detector.go",
		Old: "n.ByNumber().OfKeys()", New: "n.ByNumber()",
		Test: "TestRedactedValuesMatchNoException",
	},
	{
		Name: "a window has a pane too many", File: "rules/rate.go",
		Old: "int(d / pane)}", New: "int(d/pane) + 1}",
		Test: "TestWindowIsNeverLongerThanAskedFor",
	},
	{
		Name: "a window has a pane too few", File: "rules/rate.go",
		Old: "int(d / pane)}", New: "int(d/pane) - 1}",
		Test: "TestWindowGolden",
	},
}

var lineFaults = []Fault{
	{
		Name: "a line that begins as others may go on as it likes", File: "internal/decode/alike.go",
		Old: "if packet[pos] != ':' || ", New: "if pos == end && ",
		Test: "TestDecoderReadsLinesAlikeAsAnyOther",
	},
	{
		Name: "what is known of instances' lines holds for all", File: "internal/decode/alike.go",
		Old: "|| !believe && !a.canonical ", New: "",
		Test: "TestDecoderReadsLinesAlikeAsAnyOther|TestDecoderLearnsHowLinesBegin",
	},
	{
		Name: "the fraction of a sampled count is dropped", File: "internal/wire/sample.go",
		Old: "int64(whole), sum-whole", New: "int64(whole), 0",
		Test: "TestParseLine",
	},
	{
		Name: "the sample rate is ignored", File: "internal/wire/sample.go",
		Old: "sum += n / rate", New: "sum += n",
		Test: "TestParseLine",
	},
	{
		Name: "what a sender dropped is not read", File: "internal/wire/meta.go",
		Old: "m.Unsent, ok =", New: "_, ok =",
		Test: "TestMetaRoundTripsWithinItsBound",
	},
	{
		Name: "a line of a foreign prefix counts", File: "internal/wire/cut.go",
		Old: " || string(line[:len(head)]) != head {", New: " {",
		Test: "TestCutCountRefusesOtherLines",
	},
}

var collectorFaults = []Fault{
	{
		Name: "a record waits for company", File: "collector/kafkasink/cluster.go",
		Old: "kgo.ProducerLinger(0)", New: "kgo.ProducerLinger(100 * time.Millisecond)",
		Test: "TestRecordLeavesAtOnce",
	},
	{
		Name: "a producer that brokers disagree with is kept", File: "collector/kafkasink/run.go",
		Old: "	return outOfStep(err)\n", New: "	return false\n",
		Test: "TestIdempotentOutOfStep",
	},
	{
		Name: "a held-back count is dropped", File: "collector/heldback.go",
		Old: "k.held, k.delta = k.total(), 0", New: "k.delta = 0",
		Test: "TestBudgetAdaptsWithinAFlush",
	},
	{
		Name: "a held-back count is told as of now", File: "collector/flush.go",
		Old: "Start: instant(c.rounded(k))", New: "Start: instant(c.start)",
		Test: "TestBudgetAdaptsWithinAFlush",
	},
	{
		Name: "h is one too low", File: "collector/heldback.go",
		Old: "math.MaxInt64-1))+1)", New: "math.MaxInt64-1)))",
		Test: "TestBudgetAdaptsWithinAFlush",
	},
	{
		Name: "a candidate is not sent", File: "collector/budget.go",
		Old: "if k.load >= sel.factor {", New: "if false {",
		Test: "TestCandidatesAreSentThroughAFlood",
	},
	{
		Name: "a hot key is not sent in full", File: "collector/flush.go",
		Old: "k.flags == 0 && !sel.sends(k)", New: "!sel.sends(k)",
		Test: "TestSteeredKeysAreExempt",
	},
	{
		Name: "what was dropped is not told", File: "collector/flush.go",
		Old: "c.lost - c.statedLost + shed", New: "shed",
		Test: "TestNoIncrementIsLost",
	},
	{
		Name: "what aged is counted twice", File: "collector/heldback.go",
		Old: "c.aged += int64(k.held)", New: "c.aged += 2 * int64(k.held)",
		Test: "TestWhatIsOlderThanTheWindowLeaves",
	},
	{
		Name: "what a full table had is counted again", File: "collector/count.go",
		Old: "s.state.Or(closed) & countMask", New: "2 * (s.state.Or(closed) & countMask)",
		Test: "TestNoIncrementIsLost",
	},
	{
		Name: "polls that fail follow each other at once", File: "internal/kafkasource/poll.go",
		Old: "base.WaitBackoff(ctx, futile, firstPause, lastPause)", New: "_ = base.Backoff(futile, firstPause, lastPause)",
		Test: "TestPollBacksOff",
	},
}
