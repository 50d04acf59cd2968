package chaos

// Fault is a mistake that is planted in the product to see that a run finds it.
type Fault struct {
	Name      string
	Edits     []Edit
	Seed      uint64
	Only      []string // the events that show it
	Invariant string   // that is broken, as the oracle calls it
}

// Edit replaces a text that a file has exactly once.
type Edit struct{ File, Old, New string }
