package mutants

// Faults from lines to hot keys.

var windowFaults = []Fault{
	{
		Name: "bounds are of a window a pane too long", File: "aggregator/internal/window/bounds.go",
		Old: "w.total(e, end, int64(w.Panes)), end", New: "w.total(e, end, int64(w.Panes)+1), end",
		Package: "aggregator", Test: "TestCoolingIsExact",
	},
	{
		Name: "bounds are of a window a pane too short", File: "aggregator/internal/window/bounds.go",
		Old: "w.total(e, end, int64(w.Panes)), end", New: "w.total(e, end, int64(w.Panes)-1), end",
		Package: "aggregator", Test: "TestCoolingIsExact",
	},
	{
		Name: "high without what cells hide", File: "aggregator/internal/window/bounds.go",
		Old: "+ w.cells.bound(hash, end, panes) +", New: "+",
		Test: "TestWindowBoundsHoldTheTruth",
	},
	{
		Name: "high without what was dropped", File: "aggregator/handler.go",
		Old: "w.Conceal(w.Index(when), n)", New: "w.Conceal(w.Index(when), 0*n)",
		Test: "TestDetectorIsExactInOrder",
	},
	{
		Name: "high without what is held back", File: "aggregator/handler.go",
		Old: "v.SetHeld(bound, outsideGroups)", New: "v.SetHeld(0*bound, outsideGroups)",
		Test: "TestDetectorSuspectsWhatMayBeHot",
	},
	{
		Name: "a key that becomes hot does not know the window that has just ended", File: "aggregator/usual.go",
		Old: "v.wholeBefore(pane + panes)", New: "v.wholeBefore(pane)",
		Test: "TestTheWindowThatHasJustEndedIsKnown",
	},
	{
		Name: "high is known after a loss", File: "aggregator/internal/window/bounds.go",
		Old: "w.lost <= end-panes &&", New: "",
		Package: "aggregator", Test: "TestDetectorIsExactInOrder|TestDetectorFreezesWhileCountsAreMissing",
	},
	{
		Name: "what made room for another key is forgotten", File: "aggregator/internal/window/room.go",
		Old: "w.addToCell(hash, pane, n)\n\t\t\thad", New: "w.addToCell(hash, pane, 0*n)\n\t\t\thad",
		Test: "TestWindowBoundsHoldTheTruth",
	},
	{
		Name: "a late count is dropped", File: "aggregator/internal/window/add.go",
		Old: "} else if pane <= w.now-w.ring {", New: "} else if pane <= w.now-int64(w.Panes) {",
		Package: "aggregator", Test: "TestDetectorIsExactReorderedWithinTheGrace",
	},
	{
		Name: "a late count is put into the newest pane", File: "aggregator/count.go",
		Old: "pane := v.PaneOf(c.When)", New: "pane := max(v.Now(), v.PaneOf(c.When))",
		Test: "TestDetectorIsExactReorderedWithinTheGrace",
	},
	{
		Name: "what is too late is not told", File: "aggregator/internal/window/add.go",
		Old: "w.late += n\n", New: "",
		Test: "TestWindowCountsWhatComesTooLate",
	},
	{
		Name: "a cell has the maximum of what it hides", File: "aggregator/internal/window/cells.go",
		Old: "return addTo(&l[1+span%cellSpans], n)", New: "l[1+span%cellSpans] = max(l[1+span%cellSpans], uint32(n)); return true",
		Test: "TestCellsBoundWhatTheyHide",
	},
}

var thresholdFaults = []Fault{
	{
		Name: "enter is off by one", File: "aggregator/judge.go",
		Old: "k.low >= n.enter:", New: "k.low > n.enter:",
		Test: "TestEnterIsExact",
	},
	{
		Name: "exit is off by one", File: "aggregator/cool.go",
		Old: "high >= exit ||", New: "high > exit ||",
		Test: "TestExitIsExact",
	},
	{
		Name: "the cool-down is skipped", File: "aggregator/cool.go",
		Old: " || end.Sub(m.below) < t.CoolDown {", New: " {",
		Test: "TestCoolingIsExact",
	},
	{
		Name: "the hold is skipped", File: "aggregator/cool.go",
		Old: "end.Before(m.hold) || ", New: "",
		Test: "TestCoolingIsExact",
	},
	{
		Name: "a window from before cools", File: "aggregator/cool.go",
		Old: "if end.Before(m.over) {", New: "if false {",
		Test: "TestDetectorDoesNotCoolByAWindowFromBefore",
	},
	{
		Name: "a burst that has come does not keep a key hot", File: "aggregator/cool.go",
		Old: " || w.risesAgain(v, pane, exit) {", New: " {",
		Test: "TestDetectorDoesNotCoolBeforeABurstThatHasCome",
	},
	{
		Name: "a share's total forgets strays", File: "aggregator/internal/window/groups.go",
		Old: "hidden += g.strays.Counts.Sum(last, panes)", New: "",
		Package: "aggregator", Test: "TestSharesCountWhatHasNoGroup",
	},
	{
		Name: "what is missing of one rule is of no rule", File: "internal/decode/rulesums.go",
		Old: "l.missing[i] -= n\n		}\n		if opens", New: "l.missing[i] = 0 * n\n		}\n		if opens",
		Test: "TestRuleSumsAreWhatIsMissing",
	},
	{
		Name: "what came late is missing of its rule for ever", File: "internal/decode/rulesums.go",
		Old: "l.subtract(counts)", New: "",
		Test: "TestRuleSumsAreWhatIsMissing",
	},
	{
		Name: "each gap between the same statements lacks all of its rule", File: "aggregator/internal/window/joint.go",
		Old: "	j.left[part] -= n\n", New: "	j.left[part] -= n * int64(part&^1) / 2\n",
		Package: "aggregator", Test: "TestLossIsOfItsRule",
	},
	{
		Name: "with many gaps the oldest are unknown", File: "aggregator/internal/window/missing.go",
		Old: "(m.used < maxMissing || m.makeRoom())", New: "m.used < maxMissing",
		Test: "TestManyGapsAreMerged",
	},
	{
		Name: "a merged gap lacks nothing of a key that was spared in one", File: "aggregator/internal/window/merge.go",
		Old: "			intersect(&k.noLoose, pair[0], pair[1])\n", New: "",
		Test: "TestManyGapsAreMerged",
	},
	{
		Name: "a merged gap is as small as one that was merged is reported to be", File: "aggregator/internal/window/missing.go",
		Old: "if x.id != g.ID {", New: "if false {",
		Test: "TestManyGapsAreMerged",
	},
	{
		Name: "what was held back of a group counts again when it comes", File: "internal/decode/reports.go",
		Old: "return CertainlyInGroup", New: "return NotInGroup",
		Package: "aggregator", Test: "TestHeldBackIsInItsGroup",
	},
	{
		Name: "what was told before a sender was heard of counts as told", File: "internal/decode/reports.go",
		Old: "agree && m.Start <= from.accounts.since:", New: "false:",
		Package: "aggregator", Test: "TestHeldBackIsInItsGroup",
	},
	{
		Name: "a lost line of what is held back is forgotten", File: "aggregator/internal/window/groups.go",
		Old: "sum + hidden + s.lacks + s.heldBack + s.before", New: "sum + hidden + s.lacks + s.before",
		Package: "aggregator", Test: "TestHeldBackIsInItsGroup",
	},
	{
		Name: "a sender of other rules is believed to tell groups", File: "internal/decode/packet.go",
		Old: "m.Groups != d.senders.groups || !m.Sums.Stated, now)", New: "!m.Sums.Stated, now)",
		Package: "aggregator", Test: "TestHeldBackIsInItsGroup",
	},
	{
		Name: "a share's total is forgotten", File: "aggregator/internal/window/groups.go",
		Old: "target.Add(pane, n)", New: "",
		Package: "aggregator", Test: "TestEnterIsExact",
	},
	{
		Name: "a jump's baseline is one window short", File: "aggregator/internal/window/history.go",
		Old: "max(to-decode.BaselineWindows*h.windowPanes+1,", New: "max(to-(decode.BaselineWindows-1)*h.windowPanes+1,",
		Package: "aggregator", Test: "TestJumpComparesWithTenWindows",
	},
	{
		Name: "a jump's baseline has the present window", File: "aggregator/internal/window/history.go",
		Old: "to := last - h.windowPanes", New: "to := last",
		Package: "aggregator", Test: "TestJumpLeavesOutThePresentWindow",
	},
	{
		Name: "the top has one key more", File: "aggregator/threshold.go",
		Old: "kth(k.highs, t.Threshold.Top, high, high >= t.Rate.N)", New: "kth(k.highs, t.Threshold.Top+1, high, high >= t.Rate.N)",
		Test: "TestEnterIsExact",
	},
	{
		Name: "a rival whose count is uncertain is none", File: "aggregator/threshold.go",
		Old: "case high >= t.Rate.N:", New: "case low >= t.Rate.N:",
		Test: "TestRankingHasKeysOfUncertainCounts",
	},
	{
		Name: "of a tie in the top both are hot", File: "aggregator/threshold.go",
		Old: "n.enter = max(n.enter, rival+1)", New: "n.enter = max(n.enter, rival)",
		Test: "TestEnterIsExact",
	},
	{
		Name: "an exception is ignored", File: "aggregator/threshold.go",
		Old: "case len(r.rule.Except) == 0:", New: "case true:",
		Test: "TestEnterIsExact",
	},
	{
		Name: "of the keys near a threshold the first stay, not the nearest", File: "aggregator/near.go",
		Old: "case k.share() > n.keys[least].share():", New: "case false:",
		Test: "TestNear",
	},
	{
		Name: "a hot key is listed as near", File: "aggregator/near.go",
		Old: "if w != nil && w.hotMarks > 0 {", New: "if false {",
		Test: "TestNear",
	},
	{
		Name: "a suspect is never told", File: "aggregator/suspects.go",
		Old: "d.cfg.Publisher.Suspects(s.part, s.describe())", New: "",
		Test: "TestDetectorSuspectsWhatMayBeHot",
	},
	{
		Name: "what may be hot is no suspect", File: "aggregator/judge.go",
		Old: "v.AtMost(k.hash, k.text, k.pane) >= n.maybe:", New: "false:",
		Test: "TestDetectorSuspectsWhatMayBeHot",
	},
	{
		Name: "an explained key is listed", File: "aggregator/judge.go",
		Old: "explainer := v.watch.explainer(w); explainer != nil {", New: "explainer := v.watch.explainer(w); explainer != nil && false {",
		Test: "TestAnExplainedKeyIsNeverPublished",
	},
}

// accountFaults are faults in the accounts that make up for lost packets.
var accountFaults = []Fault{
	{
		Name: "counts whose beginning is unknown are missing of all later gaps", File: "internal/decode/gaps.go",
		Old: "			limit = min(limit, toCount(g.owed))\n", New: "",
		Test: "TestAccounts",
	},
	{
		Name: "counts that are found are those of any later gap", File: "internal/decode/gaps.go",
		Old: "		if g.to > after && g.opened >= number { // the counts can belong to this gap\n			return\n		}\n", New: "",
		Test: "TestAccountsNeverClaimTooMuch",
	},
	{
		Name: "the counts of a gap are no bound", File: "aggregator/internal/window/shortfall.go",
		Old: "lacks += x.byRule.takeCounts(x.loose", New: "lacks += x.byRule.takeCounts(0*x.loose",
		Package: "aggregator", Test: "TestHealedBounds",
	},
	{
		Name: "a request that repeats a parameter is several", File: "aggregator/state.go",
		Old: "t.sum-repeated", New: "t.sum",
		Test: "TestRepeatedParametersAreOneRequest",
	},
	{
		Name: "the counts on accounts of a gap are no bound", File: "aggregator/internal/window/shortfall.go",
		Old: "lacks += x.byRule.takeCounts(x.booked", New: "lacks += x.byRule.takeCounts(0*x.booked",
		Package: "aggregator", Test: "TestHealedBounds",
	},
	{
		Name: "what may be of later is claimed", File: "aggregator/internal/window/bounds.go",
		Old: "return max(0, low-later), high", New: "return max(0, low), high",
		Package: "aggregator", Test: "TestHealedBounds",
	},
	{
		Name: "what was found of a gap is missing still", File: "internal/decode/gaps.go",
		Old: "g.Booked > 0 && g.Booked >= 2*limit", New: "g.Booked > 0 && limit == 0",
		Test: "TestAccounts",
	},
	{
		Name: "a line that was made up for is counted again", File: "internal/decode/settle.go",
		Old: "a.reportMoved(m, e, h)\n\t\te.N = 0", New: "a.reportMoved(m, e, h)",
		Test: "TestAccounts",
	},
	{
		Name: "what was made up for is owed still", File: "internal/decode/settle.go",
		Old: "a.reduceOwed(missing, e.Number, k.seq)", New: "",
		Test: "TestAccounts",
	},
	{
		Name: "an account begins with what was never heard", File: "internal/decode/settle.go",
		Old: "e.Number <= a.opened && before > k.high", New: "false",
		Test: "TestAccounts",
	},
	{
		Name: "an account forgets what it had", File: "collector/accounts.go",
		Old: "a.Total += n", New: "a.Total = n",
		Package: "collector/statsdsink",
		Test:    "TestAccountsAreSent",
	},
	{
		Name: "an account is told once", File: "collector/accounts.go",
		Old: "c.start, c.flushes, accountRepeats", New: "c.start, c.flushes, 0",
		Package: "collector/statsdsink",
		Test:    "TestAccountsAreSent",
	},
	{
		Name: "the sum of accounts is that of all", File: "collector/statsdsink/packer.go",
		Old: "sums.Loose += n", New: "sums.Booked += n",
		Test: "TestAccountsAreSent",
	},
}

var packetFaults = []Fault{
	{
		Name: "a duplicate packet is counted", File: "internal/decode/sequence.go",
		Old: "return s.last-seq < reorder && seen.mark(seq)", New: "seen.mark(seq)\n\treturn s.last-seq < reorder",
		Test: "TestSendersTakeEachPacketOnceAndCountTheMissing",
	},
	{
		Name: "a gap is not noticed", File: "internal/decode/senders.go",
		Old: "lost = int64(m.Seq - before - 1)", New: "lost = 0",
		Test: "TestSendersTakeEachPacketOnceAndCountTheMissing",
	},
	{
		Name: "a packet that comes after all is still missing", File: "internal/decode/senders.go",
		Old: "l.subtractFound(run.noticed, 1)", New: "",
		Test: "TestDecoder",
	},
	{
		Name: "held bounds are forgotten", File: "internal/decode/packet.go",
		Old: "d.senders.held.recordHeld(s, m.Held, m.Groups != d.senders.groups || !m.Sums.Stated, now)", New: "",
		Test: "TestDecoder",
	},
	{
		Name: "of what is held back the part before the window is forgotten", File: "internal/decode/held.go",
		Old: "m.bound = 2 * (", New: "m.bound = 1 * (",
		Test: "TestHeldIsABoundOverEachRulesWindow",
	},
	{
		Name: "what a sender dropped hides nothing", File: "internal/decode/packet.go",
		Old: "h.AddHiddenCounts(c.When, unsent)", New: "",
		Test: "TestDecoder|TestDecoderHiddenMassDoesNotOverflow",
	},
	{
		Name: "a sender's fast clock moves the windows", File: "internal/decode/packet.go",
		Old: "start.Before(now) {", New: "m.Start != 0 {",
		Test: "TestDecoder",
	},
	{
		Name: "fractions of sampled counts do not add up", File: "internal/decode/line.go",
		Old: "c.N += d.fractions.carry(c.Hash, part)", New: "",
		Test: "TestDecoderConservesParts",
	},
}
