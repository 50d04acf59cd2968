package mutants

// Faults in the trust in senders, and in its limits.

var trustFaults = []Fault{
	{
		Name: "a MAC is not over the meta line", File: "internal/wire/signature.go",
		Old: "	h.Write(meta)\n", New: "	_ = meta\n",
		Test: "TestNoBitCanBeTurnedOver|TestVerify",
	},
	{
		Name: "only the beginning of a MAC is compared", File: "internal/wire/signature.go",
		Old: "lines)[:macSize], m.given[:]", New: "lines)[:4], m.given[:4]",
		Test: "TestNoBitCanBeTurnedOver",
	},
	{
		Name: "a record's MAC is good in any partition", File: "internal/wire/signature.go",
		Old: "int64(partition), 10", New: "0*int64(partition), 10",
		Test: "TestRecordMAC",
	},
	{
		Name: "a MAC is not verified", File: "internal/decode/believe.go",
		Old: "d.mac == nil || d.isSigned(", New: "d.mac == nil || true || d.isSigned(",
		Test: "TestSignedPacketsAreBelieved",
	},
	{
		Name: "a packet may be as old as it likes", File: "internal/decode/believe.go",
		Old: "age.Abs() > t.window", New: "false && age.Abs() > t.window",
		Test: "TestSignedPacketsAreBelieved",
	},
	{
		Name: "a packet of an earlier life is new", File: "internal/decode/replay.go",
		Old: "s := r.lives[life{string(m.Instance), m.Incarnation}]", New: "s := r.lives[life{string(m.Instance), m.Incarnation + 1}]",
		Test: "TestSignedPacketsAreBelieved",
	},
	{
		Name: "what has come is forgotten too soon", File: "internal/decode/replay.go",
		Old: "> 2*window", New: "> window/2",
		Test: "TestSignedPacketsAreBelieved",
	},
	{
		Name: "datagrams of anybody are read", File: "internal/statsdsource/reader.go",
		Old: "if d.AdmitsPacket()", New: "if true || d.AdmitsPacket()",
		Test: "TestListedSenders",
	},
	{
		Name: "what is over a cap is missing", File: "internal/decode/caps.go",
		Old: "sums := d.packetSums(sum)", New: "sums := packetSums{byRule: d.byRule}",
		Test: "TestGapAfterACapIsTheGap",
	},
	{
		Name: "a name over the cap tells what it dropped", File: "internal/decode/packet.go",
		Old: "s == nil && d.senders.names != nil", New: "false && d.senders.names != nil",
		Test: "TestCapOnNames",
	},
	{
		Name: "a sender may say that it lost anything", File: "internal/decode/senders.go",
		Old: "s.mostClaimed > 0 && claimed(", New: "false && claimed(",
		Test: "TestCapOnClaims",
	},
	{
		Name: "bytes without a line keep a connection", File: "internal/statsdsource/streams.go",
		Old: "s.Understood() > before {", New: "before >= 0 {",
		Test: "TestOnePeerLocksNobodyOut",
	},
	{
		Name: "a peer that has sent lines keeps all its connections", File: "internal/statsdsource/accept.go",
		Old: "case newcomer != nil && places", New: "case false && places",
		Test: "TestOnePeerLocksNobodyOut",
	},
	{
		Name: "the oldest unused connection gives way, whoever has many", File: "internal/statsdsource/accept.go",
		Old: "gives = places.Gives(*newcomer)", New: "_ = gives",
		Test: "TestUnusedConnectionsOfFewStay",
	},
}
