package mutants

// Fault is a mistake that is planted in the product.
type Fault struct {
	Name string
	File string // from the module's root
	// Old is a text that the file has exactly once, New what takes its place. They are
	// as short as distinguishes them from others, so that changes around them do no harm.
	Old, New string
	// Package is whose tests are to find it, from the module's root; empty: the
	// file's own.
	Package string
	// Test matches the names of the tests that are to find it, one of which is enough.
	Test string
}

// Faults returns all faults.
func Faults() (all []Fault) {
	for _, part := range [][]Fault{
		keyFaults,
		lineFaults,
		collectorFaults,
		windowFaults,
		thresholdFaults,
		packetFaults,
		accountFaults,
		clockFaults,
		publishedFaults,
		limitFaults,
		fleetFaults,
		waitFaults,
		togetherFaults,
		guardFaults,
		tableFaults,
		replayFaults,
		trustFaults,
		trapFaults,
		attachFaults,
		bodyFaults,
		adapterFaults,
		reloadFaults,
		commandFaults,
		suggestFaults,
		restartFaults,
		takeoverFaults,
		bucketFaults,
		dayFaults,
		doorFaults,
	} {
		all = append(all, part...)
	}
	return all
}
