package mutants

// Fault is a mistake that is planted in the product.
type Fault struct {
	Name string
	File string // slash-separated path from the module's root
	// Old is a text that occurs exactly once in the file, and New is its replacement. They are as
	// short as possible while unique, so that changes around them do no harm.
	Old, New string
	// Package is the path, from the module's root, of the package whose tests must find the
	// fault. Empty means the file's own package.
	Package string
	// Test matches the names of the tests that must find the fault. One of them is enough.
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
		permitFaults,
		waitFaults,
		togetherFaults,
		guardFaults,
		costFaults,
		tableFaults,
		replayFaults,
		trustFaults,
		trapFaults,
		attachFaults,
		bodyFaults,
		adapterFaults,
		reloadFaults,
		commandFaults,
		operateFaults,
		suggestFaults,
		restartFaults,
		takeoverFaults,
		bucketFaults,
		dayFaults,
		doorFaults,
		onHotFaults,
		invalidationFaults,
		historyFaults,
	} {
		all = append(all, part...)
	}
	return all
}
