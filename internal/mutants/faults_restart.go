package mutants

// restartFaults are in what becomes of hot keys and windows when an aggregator restarts.
var restartFaults = []Fault{
	{
		Name: "keys that are published already are not adopted", File: "hotkeys/writer.go",
		Old: "if p.standby || p.epoch == 0 && p.cfg.Inherit != nil {", New: "if p.standby {",
		Test: "TestInherit",
	},
	{
		Name: "a standby that takes over drops keys that cooled here", File: "hotkeys/lease.go",
		Old: "		case p.cfg.Inherit != nil:\n			p.desired.adopt(h)\n", New: "",
		Test: "TestInherit",
	},
	{
		Name: "the detector refuses keys that another process published", File: "aggregator/adopt.go",
		Old: "if r == nil || !d.adopt(r, &h, now) {", New: "if r == nil || h.Text != \"\" {",
		Test: "TestRestartsKeepTheHotSet",
	},
	{
		Name: "a high count is known before its window was heard whole", File: "aggregator/detector.go",
		Old: "v.begin(nil, start, start.Add(-d.lag))", New: "_ = v",
		Test: "TestRestartsKeepTheHotSet|TestTotalsWaitForAWholeWindow",
	},
	{
		Name: "a key that is adopted is held by the threshold of its cause alone", File: "aggregator/adopt.go",
		Old: "append(strings.Split(h.Also, \",\"), holderName", New: "append([]string(nil), holderName",
		Test: "TestDetectorAdoptsByTheThresholdsThatHeld",
	},
	{
		Name: "a key that is adopted is held by all thresholds of its rule", File: "aggregator/adopt.go",
		Old: "	if len(all) == 0 {\n		return r.thresholds", New: "	if true {\n		return r.thresholds",
		Test: "TestDetectorAdoptsByTheThresholdsThatHeld",
	},
	{
		Name: "the StatsD source takes its first window for whole", File: "aggregator/statsdsource/source.go",
		Old: ", Start: time.Now(), Days: c.Days}", New: ", Days: c.Days}",
		Test: "TestSourceFindsHotKeysInPackets",
	},
}
