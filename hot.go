package hotparam

import "time"

// Unknown stands for a bound that cannot be told, after a loss on the way.
const Unknown int64 = -1

// Hot is a key that is hot, as the detector tells it and as it is published.
type Hot struct {
	Key
	// Low and High bound the key's count in the rule's window: Low was really
	// reported, High adds what could have been hidden. High may be [Unknown].
	Low, High int64
	// Rate is Low as requests per second over the rule's window.
	Rate float64
	// Since is when the count reached the threshold, Until when the entry ends
	// by itself unless it is renewed.
	Since, Until time.Time
	// Limit and Burst are what the rule holds a hot key to; zero: watched only.
	Limit Rate
	Burst int64
	Mode  Mode
	// Owner names the aggregator's shard or partition that published the key.
	Owner string
}

// Mode is what is done to the requests of a hot key.
type Mode string

// Modes of a hot key.
const (
	ModeLimit  Mode = "limit"  // requests over the limit are refused
	ModeShadow Mode = "shadow" // requests over the limit are counted, and pass
	ModeWatch  Mode = "watch"  // the rule has no limit
)

// Change is a difference between two states of the hot set.
type Change struct {
	Hot  []Hot // became hot, or changed what is held against them
	Cool []Hot // are hot no longer, with their last counts
}

// Empty tells whether nothing changed.
func (c Change) Empty() bool { return len(c.Hot) == 0 && len(c.Cool) == 0 }
