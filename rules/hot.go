package rules

import "time"

// Unknown stands for a bound that is not known, after a loss on the way.
const Unknown int64 = -1

// Hot is a hot key, as the detector reports it and as it is published.
type Hot struct {
	Key
	// Low and High bound the key's count in the window of Cause: Low was really
	// reported, High adds what could have been hidden. High may be [Unknown].
	Low, High int64
	// Estimated reports whether part of the count was sampled (StatsD's @rate): the key
	// is hot by what the samples stand for, Low is what was seen, and High is unknown,
	// since chance sets no bound to what was not sampled.
	Estimated bool
	// Cause is the threshold in whose window Low and High count: the one that made the
	// key hot, or another that holds it since that one does not any more.
	Cause Cause
	// Also lists the other thresholds that hold the key hot, by kind and window, separated by
	// commas: "share/10s,rate/1h0m0s". A detector that adopts the key continues with them.
	Also string
	// Rate is how many units of Cause came per second of late: when the key became hot,
	// and in a [Change], Low over the window; after that, of a longer window than a second,
	// over the last second that is known: it falls when the traffic stops. Of
	// a key that is Estimated it is what the samples stand for.
	Rate float64
	// Ratio is the count divided by the count that the threshold needed for it:
	// 2 is twice the threshold, of whatever kind and unit. Of several thresholds
	// that hold the key hot it is the highest ratio. Keys compete for the places of
	// the published set by it.
	Ratio float64
	// Since is when the count reached the threshold, Until when the entry ends
	// by itself unless it is renewed.
	Since, Until time.Time
	// Limit and Burst are the rule's limit of a hot key. Zero means that the key is only
	// watched.
	Limit Rate
	Burst int64
	Mode  Mode
	// Usual reports whether the count is what it always is. It is on nine tenths of its route's
	// requests, or not far above its mean of ten windows. A usual key hides none
	// that is not.
	Usual bool
	// Spared reports whether the key is usual and not limited, as hot keys that are listed beside it
	// explain its unusual count.
	Spared bool
	// Local reports whether the key is hot in this process alone: it has counted the
	// threshold, and limits the key until the aggregator confirms it or not; or the key is
	// Pinned and nothing else.
	Local bool
	// Pinned reports whether an operator holds the key to its rule's limit. It is set in
	// instances only.
	Pinned bool
	// Top is where the traffic comes from. Nil means not known.
	Top *Attribution
	// Owner names the aggregator's shard or partition that published the key.
	Owner string
}

// Attribution lists where the requests of a hot key come from and go to: at most
// [MaxOrigins] each, the highest count first. It is immutable.
type Attribution struct {
	Routes, Instances, Callers []Origin
	// Explains is how many more specific keys of the rule are hot for no other
	// reason than this key, and are not listed beside it.
	Explains int
}

// MaxOrigins is how many routes, instances and callers are listed of a hot key.
const MaxOrigins = 5

// MinOriginSpan is the least time over which routes and callers are counted, as an instance
// reports them once a second.
const MinOriginSpan = 2 * time.Second

// Origin is one place where requests of a key come from: Count of them at most,
// and at least Count-Over, in the rule's window. Routes and callers are sampled,
// over [MinOriginSpan] at least: their Count is about right.
type Origin struct {
	Name  string
	Count int64
	Over  int64
}

// Mode is what happens to the requests of a hot key.
type Mode string

// Modes of a hot key.
const (
	ModeLimit  Mode = "limit"  // requests over the limit are refused
	ModeShadow Mode = "shadow" // requests over the limit are counted, and pass
	ModeWait   Mode = "wait"   // requests over the limit wait for their turn, and are refused if that takes too long
	ModeServe  Mode = "serve"  // requests over the limit get an answer in place of the handler's
	ModeWatch  Mode = "watch"  // the rule has no limit
)

// Fleet is what the aggregator publishes besides the hot set, so that each instance
// knows what its own counts mean.
type Fleet struct {
	// Instances is how many send counts. Zero means not known.
	Instances int
	// Suspects are keys that may be hot: the counts do not decide it yet.
	Suspects []Key
}

// Instance is a process that sends counts, and when it was last heard of.
type Instance struct {
	Name  string
	Heard time.Time
}

// Change is a difference between two states of the hot set.
type Change struct {
	Hot  []Hot // became hot, or changed their limit
	Cool []Hot // are hot no longer, with their last counts
}

// Empty reports whether nothing changed.
func (c Change) Empty() bool { return len(c.Hot) == 0 && len(c.Cool) == 0 }
