package mutants

// tableFaults are faults in full tables.
var tableFaults = []Fault{
	{
		Name: "a key is evicted without its debt", File: "limiter/debts.go",
		Old: "(*class).add(hash, owed, t)", New: "_ = class",
		Test: "TestMemoryFull|TestKeyedFull",
	},
	{
		Name: "a row of the sketch adds debts up", File: "limiter/sketch.go",
		Old: "if paid || owed[i] > cell[i] {\n\t\t\t\tcell[i] = owed[i]", New: "if i <= debtAt {\n\t\t\t\tcell[i] = max(cell[i], t) + owed[i] - t\n\t\t\t} else if paid || owed[i] > cell[i] {\n\t\t\t\tcell[i] = owed[i]",
		Test: "TestDebtsOfStrangers",
	},
	{
		Name: "a cell of the sketch keeps the last debt", File: "limiter/sketch.go",
		Old: "if paid || owed[i] > cell[i] {", New: "if paid || owed[i] > 0 {",
		Test: "TestDebtsAreNeverLess",
	},
	{
		Name: "the sketch has a single row", File: "limiter/sketch.go",
		Old: "sketchRows    = 4", New: "sketchRows    = 1",
		Test: "TestSketchHasSeveralRows",
	},
	{
		Name: "the filter is not asked", File: "limiter/sketch.go",
		Old: "return s.recent.until > t && s.recent.has(hash) || s.older.until > t && s.older.has(hash)", New: "return s.recent.until > t || s.older.until > t",
		Test: "TestDebtsOfStrangers",
	},
	{
		Name: "the older generation of the filter is not asked", File: "limiter/sketch.go",
		Old: " || s.older.until > t && s.older.has(hash)", New: "",
		Test: "TestDebtsAreNeverLess",
	},
	{
		Name: "a generation of the filter is dropped before its debts are paid", File: "limiter/sketch.go",
		Old: "(f.keys < filterKeys*s.keys || s.older.until > t)", New: "f.keys < filterKeys*s.keys",
		Test: "TestDebtsAreNeverLess",
	},
	{
		Name: "keys that owe all of their limit are not kept apart", File: "limiter/debts.go",
		Old: "if spent {", New: "if false {",
		Test: "TestDebtsOfStrangers",
	},
	{
		Name: "debts do not follow a clock that was reset", File: "limiter/debts.go",
		Old: "cell[debtUntil] = moved(cell[debtUntil])", New: "_ = moved",
		Test: "TestDebtsAreAsLongAfterAReset",
	},
	{
		Name: "debts of one family are paid at the rate of another", File: "limiter/debts.go",
		Old: "alone := d.family == family && d.mixed <= t", New: "alone := true",
		Test: "TestDebtsKeepTheRateOfTheirFamily",
	},
	{
		Name: "debts do not follow the quota", File: "limiter/keys.go",
		Old: "if next.family == old.family && bucketed(next.quota) {", New: "if false {",
		Test: "TestEvictedKeysKeepToAllTheirQuotas",
	},
	{
		Name: "a new state of a key begins without its debt", File: "limiter/states_debts.go",
		Old: "		d.indebt(&owed, now)\n", New: "",
		Test: "TestMemoryFull",
	},
	{
		Name: "a custom algorithm's key is forgotten when it is evicted", File: "limiter/states_debts.go",
		Old: "return &barred{State: state, clock: clock{t}, until: owed[debtUntil]}, true", New: "return state, false",
		Test: "TestFullTableOfOwnAlgorithm",
	},
	{
		Name: "a key without a place holds any number of permits", File: "limiter/semaphore/crowd.go",
		Old: "if ask.N > ask.Permits-held {", New: "if ask.N > ask.Permits {",
		Test: "TestSemaphoreFull",
	},
	{
		Name: "a key gets a place while it holds permits without one", File: "limiter/semaphore/stripe.go",
		Old: "held = st.crowd.holds(hash)", New: "held = 0",
		Test: "TestSemaphoreFullInAnyOrder",
	},
	{
		Name: "permits of a key without a place do not come back", File: "limiter/semaphore/slot.go",
		Old: "st.crowd.add(k.hash, -n)", New: "_ = n",
		Test: "TestSemaphoreFull",
	},
	{
		Name: "a request passes whose ticket finds no place", File: "internal/gateway/check/handle.go",
		Old: `id, decision = "", gateway.NoPlace()`, New: `id = ""`,
		Test: "TestTicketsFull",
	},
	{
		Name: "a descriptor passes whose ticket finds no place", File: "internal/gateway/rls/decide.go",
		Old: "decisions[alone] = gateway.NoPlace()", New: "_ = alone",
		Test: "TestTicketsFull",
	},
	{
		Name: "a window that returns forgets what matters to longer ones", File: "limiter/window.go",
		Old: "	w.others = append(w.others, all)\n", New: "",
		Test: "TestEvictedKeysKeepToAllTheirQuotas",
	},
	{
		Name: "a reservation is a slot of every window", File: "limiter/window.go",
		Old: ">= until && taken <= t {", New: ">= until {",
		Test: "TestEvictedKeysKeepToAllTheirQuotas",
	},
	{
		Name: "an evicted key forgets when its reservations are due", File: "limiter/debts.go",
		Old: "owed[debtDue], owed[debtMark] = d.due, d.marks", New: "owed[debtMark] = d.marks",
		Test: "TestEvictedKeysKeepToAllTheirQuotas",
	},
	{
		Name: "an evicted bucket forgets its marks", File: "limiter/takeline.go",
		Old: ", debtMark: word + min(l.back, math.MaxInt64-word)}", New: "}",
		Test: "TestEvictedKeysKeepToAllTheirQuotas",
	},
	{
		Name: "a debt under another rate forgets when reservations are due", File: "limiter/debts.go",
		Old: "promised+missing(cell, promised, interval))", New: "0*promised)",
		Test: "TestEvictedKeysKeepToAllTheirQuotas",
	},
}
