package mutants

// restartFaults are faults in hot keys and windows when an aggregator restarts.
var restartFaults = []Fault{
	{
		Name: "keys that are published already are not adopted", File: "hotkeys/publisher_write.go",
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
		Old: "(r == nil || !d.adopt(r, &h, now)) {", New: "(r == nil || h.Text != \"\") {",
		Test: "TestRestartsKeepTheHotSet",
	},
	{
		Name: "a high count is known before its window was heard whole", File: "aggregator/detector.go",
		Old: "v.beginWindows(nil, start, start.Add(-d.cfg.Lag))", New: "_ = v",
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
		Name: "the StatsD source takes its first window for whole", File: "internal/statsdsource/source.go",
		Old: ", Start: s.started, Days: c.Days, OnTops: c.OnTops}", New: ", Days: c.Days}",
		Test: "TestSourceFindsHotKeysInPackets",
	},
	{
		Name: "high counts are known before each sender was heard again", File: "internal/decode/resume.go",
		Old: "	s.losses.awaited = since\n", New: "",
		Package: "internal/statsdsource",
		Test:    "TestNothingIsKnownWhileASenderIsUnheard",
	},
	{
		Name: "an instance was silent while no process listened", File: "internal/decode/resume.go",
		Old: "laterOf(cut, s.resumed.since).Sub(cut)", New: "0",
		Test: "TestResumeOfAnInstanceThatNoProcessCouldHear",
	},
	{
		Name: "a snapshot is used however old it is", File: "internal/statsdsource/snapshot.go",
		Old: "case age >= longest:", New: "case age >= 1000*longest:",
		Test: "TestSnapshotsThatDoNotFitAreRefused",
	},
	{
		Name: "a snapshot from the future is used", File: "internal/statsdsource/snapshot.go",
		Old: "case age < -decode.DefaultLag:", New: "case age < -longest*1000:",
		Test: "TestSnapshotsThatDoNotFitAreRefused",
	},
	{
		Name: "a standby counts what it has heard and what the snapshot has of the same packets", File: "internal/decode/snapshot.go",
		Old: "o == nil || o.lowest <= p.Seq || current.accounts.began > 0", New: "o == nil",
		Package: "internal/statsdsource",
		Test:    "TestAStandbyThatCountedUsesNoSnapshot",
	},
	{
		Name: "windows are saved without the batches that wait to be counted", File: "aggregator/shard.go",
		Old: "	s.pending.Add(1)\n	s.queue <- &shardBatch{saves: f} // has room: one at a time", New: "	s.mu.Lock()\n	defer s.mu.Unlock()\n	f(s.detector)",
		Test: "TestSaveWaitsForWhatIsQueued",
	},
	{
		Name: "windows have packets that the senders' positions do not", File: "internal/decode/snapshot.go",
		Old: "Number: k.number, Low: k.low, High: k.high,", New: "Number: k.number, Low: k.low, High: k.low,",
		Package: "internal/statsdsource",
		Test:    "TestSnapshotsBoundTheTruth",
	},
	{
		Name: "what was sent between a snapshot and the first packet is no gap", File: "internal/decode/resumegap.go",
		Old: "		h.RecordGap(g.Gap)\n		a.insertGap", New: "		a.insertGap",
		Package: "internal/statsdsource",
		Test:    "TestSnapshotsBoundTheTruth",
	},
	{
		Name: "windows forget the counts that healed in the process before", File: "aggregator/internal/window/resumed.go",
		Old: "	if exact && (healed > 0 || w.resumed != nil) {\n		step = 1\n	} else {\n", New: "	if step = w.ring; !exact {\n",
		Test: "TestResumedBoundsHold",
	},
	{
		Name: "histories forget the counts that healed in the process before", File: "aggregator/internal/window/resumed.go",
		Old: "		healedLack = healed\n", New: "",
		Test: "TestResumedHistoriesHold",
	},
	{
		Name: "a rank is known by the keys of the snapshot", File: "aggregator/threshold.go",
		Old: " || before == rules.Unknown", New: "",
		Package: "internal/statsdsource",
		Test:    "TestNoRankIsKnownByTheKeysOfASnapshot",
	},
	{
		Name: "keys that are not in the snapshot have no part in a rank", File: "aggregator/threshold.go",
		Old: "+max(0, lacks)+max(0, before)", New: "+max(0, lacks)",
		Package: "internal/statsdsource",
		Test:    "TestNoRankIsKnownByTheKeysOfASnapshot",
	},
	{
		Name: "keys near a threshold for which a shard's part has no room are forgotten", File: "aggregator/resumed.go",
		Old: "			if !saved[i] {\n", New: "			if false {\n",
		Package: "internal/statsdsource",
		Test:    "TestNoRankIsKnownByTheKeysOfASnapshot",
	},
	{
		Name: "keys without a text are not among those that a snapshot bounds", File: "aggregator/internal/window/resumed.go",
		Old: "max(n, w.names.unnamedFrom(w.now-w.ring)-1)", New: "n",
		Test: "TestOthersAreBounded",
	},
	{
		Name: "keys that the snapshot before bounded have nothing", File: "aggregator/internal/window/resumed.go",
		Old: "+lost.before+resumed)", New: "+lost.before)",
		Test: "TestOthersAreBounded",
	},
	{
		Name: "keys for which a snapshot has no room are forgotten", File: "internal/snapshot/encode.go",
		Old: "				references[j].leaveOut(&s.Keys[i])\n", New: "				_ = references[j]\n",
		Test: "TestKeysThatDoNotFitAreAmongTheOthers",
	},
	{
		Name: "what totals lack is not saved", File: "aggregator/internal/window/resumedgroups.go",
		Old: "		b.AddLack(from, n)\n", New: "		_ = n\n",
		Test: "TestResumedGroupsHold",
	},
	{
		Name: "what took off the total of a group is not saved", File: "aggregator/internal/window/resumedgroups.go",
		Old: "Counts: savedPanes(&counts.Counts), Again: savedPanes(&counts.again)}", New: "Counts: savedPanes(&counts.Counts)}",
		Test: "TestResumedGroupsHold",
	},
	{
		Name: "totals that were healed at the cut count as of then", File: "aggregator/internal/window/resumedgroups.go",
		Old: "	b.Later = w.missing.lossAfter(", New: "	b.Later = 0 * w.missing.lossAfter(",
		Test: "TestResumedGroupsHold",
	},
	{
		Name: "groups that began after the process resume", File: "aggregator/internal/window/resumedgroups.go",
		Old: "if s == nil || g.before != never {", New: "if s == nil {",
		Test: "TestGroupsOfAReloadDoNotResume",
	},
	{
		Name: "groups are not saved", File: "aggregator/resumed.go",
		Old: "		r.Groups = v.groups.Save(v.Window, r.Newest)\n", New: "",
		Package: "internal/statsdsource",
		Test:    "TestARestartDelaysNoCooling",
	},
	{
		Name: "a history is resumed without what it lacks", File: "aggregator/internal/window/history.go",
		Old: "h.Window.Resume(hash, text, s)", New: "h.Window.Resume(hash, text, &snapshot.Counted{Window: s.Window, Counts: s.Counts, Bounds: snapshot.Bounds{Known: s.Known, Later: s.Later}})",
		Test: "TestResumedHistoriesHold",
	},
	{
		Name: "a history is resumed as if it were known since ever", File: "aggregator/internal/window/history.go",
		Old: "	if h.began > w.beforeStart+1 {\n", New: "	if false {\n",
		Test: "TestResumedHistoriesHold",
	},
	{
		Name: "histories are not saved", File: "aggregator/snapshot.go",
		Old: "					copied.History = v.history.Save(v.Window, i)\n", New: "",
		Package: "internal/statsdsource",
		Test:    "TestARestartDelaysNoCooling",
	},
	{
		Name: "a history that was made when a rule changed resumes", File: "aggregator/internal/window/history.go",
		Old: "if s != nil && h.whole && s.Pane", New: "if s != nil && s.Pane",
		Test: "TestHistoriesOfAReloadDoNotResume",
	},
	{
		Name: "a rule that came with a reload resumes", File: "aggregator/snapshot.go",
		Old: " && v.Panes == panes && v.sinceStart {", New: " && v.Panes == panes {",
		Test: "TestRulesOfAReloadDoNotResume",
	},
	{
		Name: "a cool-down begins again at a restart", File: "aggregator/cool.go",
		Old: "if m.saved != nil && m.saved.wasBelow(w, t, pane, exit) {", New: "if false {",
		Package: "internal/statsdsource",
		Test:    "TestARestartDelaysNoCooling",
	},
	{
		Name: "a process saves a snapshot that has lost the owner", File: "hotkeys/snapshot.go",
		Old: "if saved == 0 {", New: "if saved < 0 {",
		Test: "TestSnapshotIsTheHolders",
	},
	{
		Name: "what a young instance sent before is missing beside the gap to the snapshot", File: "internal/decode/resume.go",
		Old: "			from.accounts.takeYoungGap(h)\n", New: "",
		Test: "TestResumeOfAYoungInstance",
	},
	{
		Name: "the gap of a restart lacks of a rule what was counted before", File: "internal/decode/resumegap.go",
		Old: "	l.subtract(arrived)\n", New: "",
		Test: "TestRuleSumsAreWhatIsMissing",
	},
	{
		Name: "sums by rule begin anew with a restart", File: "internal/decode/snapshot.go",
		Old: "ByRule: a.rules.save(),", New: "",
		Test: "TestRuleSumsAreWhatIsMissing",
	},
	{
		Name: "the rules of a snapshot's sums have their former numbers", File: "internal/snapshot/snapshot.go",
		Old: "copy(have[2*now:], s.Have[2*was:2*was+2])", New: "copy(have[2*was:], s.Have[2*was:2*was+2])",
		Test: "TestNumber",
	},
	{
		Name: "what was missing shortly before the cut is missing nowhere", File: "internal/decode/carried.go",
		Old: "g.Loose+toCount(c.Loose)", New: "g.Loose",
		Test: "TestRuleSumsAreWhatIsMissing",
	},
	{
		Name: "what was missing of a rule shortly before the cut is missing of no rule", File: "internal/decode/carried.go",
		Old: "sums.Have[place] -= n", New: "sums.Have[place] -= 0 * n",
		Test: "TestRuleSumsAreWhatIsMissing",
	},
	{
		Name: "what was missing shortly before the cut bounds keys for good", File: "aggregator/snapshot.go",
		Old: "d.missing.LeaveOut(carried)", New: "_ = carried",
		Test: "TestSaveLeavesOutCarriedGaps",
	},
	{
		Name: "gaps are left out of the bounds of keys that no gap of the restart has", File: "internal/decode/snapshot.go",
		Old: "saved.Carried = a.carryGaps(s.Cut, &saved.ByRule, s.Carried)", New: "a.carryGaps(s.Cut, &saved.ByRule, s.Carried)",
		Test: "TestAccountsSpareWhatIsCarried",
	},
	{
		Name: "an account that was opened shortly before the cut spares the key what was lost before it", File: "internal/decode/carried.go",
		Old: "k.number <= c.Opened && ", New: "",
		Test: "TestAccountsSpareWhatIsCarried",
	},
	{
		Name: "an account that was first heard behind a carried gap shows what its key lacks there", File: "internal/decode/carried.go",
		Old: " && k.since < c.Seq {", New: " {",
		Test: "TestAccountsSpareWhatIsCarried",
	},
	{
		Name: "an account that a packet before the snapshot continues shows what its key lacks in a carried gap", File: "internal/decode/resumegap.go",
		Old: "if k.since < g.from {", New: "if true {",
		Test: "TestAccountsSpareWhatIsCarried",
	},
	{
		Name: "an account of the process before was followed since ever", File: "internal/decode/resume.go",
		Old: "since: seq, heard", New: "heard",
		Test: "TestAccountsSpareWhatIsCarried",
	},
	{
		Name: "an account with counts of an unknown time was followed since ever", File: "internal/decode/settle.go",
		Old: "before, before, 0, m.Seq\n", New: "before, before, 0, 0\n",
		Test: "TestAccountsSpareWhatIsCarried",
	},
	{
		Name: "an account that does not agree with its sender was followed since ever", File: "internal/decode/settle.go",
		Old: "missing, k.since = 0, m.Seq", New: "missing = 0",
		Test: "TestAccountsSpareWhatIsCarried",
	},
	{
		Name: "a restart spares keys whose accounts the sender may have dropped", File: "internal/decode/resumegap.go",
		Old: "	a.excludeKeys(&g.Gap, opened, h)\n", New: "	for key, k := range a.keys {\n		if k.number <= opened {\n			h.ExcludeFromGap(g.ID, int(key.rule), key.hash, false)\n		}\n	}\n",
		Test: "TestARestartSparesNoKeyThatWasSilent",
	},
}
