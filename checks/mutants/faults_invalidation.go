package mutants

// Faults in the invalidation of shared answers at all instances.

var invalidationFaults = []Fault{
	{
		Name: "a stream that was trimmed or lost is not noticed", File: "hotkeys/invalidator_follow.go",
		Old: "oldest == v.seen.last && ", New: "oldest != \"?\" && ",
		Test: "TestMissedInvalidations",
	},
	{
		Name: "a read leaves no room for the last known entry", File: "hotkeys/invalidator_follow.go",
		Old: "count = maxInvalidationRead + 1\n", New: "count = maxInvalidationRead\n",
		Test: "TestMissedInvalidations",
	},
	{
		Name: "an entry that cannot be read is skipped", File: "hotkeys/invalidator_follow.go",
		Old: "		v.reportForeign(err)\n		v.flush()\n", New: "		v.reportForeign(err)\n",
		Test: "TestMissedInvalidations",
	},
	{
		Name: "a foreign value leaves the answers", File: "hotkeys/invalidator_follow.go",
		Old: "		v.seen.last = \"\"\n		v.flush()\n", New: "		v.seen.last = \"\"\n",
		Test: "TestForeignInvalidations",
	},
	{
		Name: "a failed read is no reason for doubt", File: "hotkeys/invalidator_follow.go",
		Old: "v.seen.unsure = err != nil", New: "v.seen.unsure = false",
		Test: "TestInvalidationsAfterAnOutage",
	},
	{
		Name: "a new subscription is no reason for doubt", File: "hotkeys/invalidator_follow.go",
		Old: " && subscriptions == v.seen.subscriptions\n", New: "\n",
		Test: "TestInvalidationsAfterAnOutage",
	},
	{
		Name: "an instance applies its own invalidations twice", File: "hotkeys/invalidator_follow.go",
		Old: "case i.Sender == v.id:", New: "case i.Sender == \"\":",
		Test: "TestInvalidations",
	},
	{
		Name: "an instance leaves its own answers to the stream", File: "hotkeys/invalidator.go",
		Old: "	v.cache.InvalidateTarget(id)\n", New: "",
		Test: "TestInvalidations",
	},
	{
		Name: "a push that comes early is forgotten", File: "hotkeys/poller.go",
		Old: "				late.Reset(hintRate.Every)\n", New: "",
		Test: "TestPushesAreBounded",
	},
	{
		Name: "each push makes an instance read", File: "hotkeys/poller.go",
		Old: "p.hints.Allow(hintRate, time.Now()); !ok {", New: "p.hints.Allow(hintRate, time.Now()); !ok && false {",
		Test: "TestPushesAreBounded",
	},
	{
		Name: "an invalidation that could not be sent is forgotten", File: "hotkeys/invalidator_send.go",
		Old: "	if sent {\n", New: "	if true {\n",
		Test: "TestInvalidationsDuringAnOutage",
	},
	{
		Name: "too many invalidations are forgotten", File: "hotkeys/invalidator_send.go",
		Old: "		p.all, p.set = true, nil\n		p.overflows++\n", New: "		p.set = nil\n		p.overflows++\n",
		Test: "TestManyInvalidations",
	},
	{
		Name: "an instance sends as fast as it can", File: "hotkeys/invalidator_send.go",
		Old: "	return sendEvery\n", New: "	return 0\n",
		Test: "TestInvalidationsAreBounded",
	},
	{
		Name: "the last invalidations of a process are not sent", File: "hotkeys/invalidator_send.go",
		Old: "	v.sendPending(context.WithoutCancel(ctx))\n", New: "",
		Test: "TestLastInvalidations",
	},
	{
		Name: "a foreign value is not repaired", File: "hotkeys/invalidation.go",
		Old: "	if isWrongType(entry.Err()) {\n", New: "	if false {\n",
		Test: "TestForeignInvalidations",
	},
	{
		Name: "clients can know which targets share a counter", File: "internal/onhot/generation.go",
		Old: "maphash.Comparable(g.seed, id)", New: "id",
		Test: "TestPlacesAreSecret",
	},
	{
		Name: "the case of a host hides it from an invalidation", File: "internal/onhot/generation.go",
		Old: "	host = strings.ToLower(host)\n", New: "	_ = strings.ToLower\n",
		Test: "TestIDs",
	},
}
