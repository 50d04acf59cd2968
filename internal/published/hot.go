package published

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Unknown is the value of a bound that is unknown because of a loss on the way.
const Unknown int64 = -1

// Plus adds bounds. Either may be [Unknown].
func Plus(a, b int64) int64 {
	if a == Unknown || b == Unknown {
		return Unknown
	}
	return a + b
}

// Hot is a hot key, in the form that the detector reports and publishes.
type Hot struct {
	rules.Key
	// Low and High bound the key's count in the window of Cause. Low is the count that was
	// reported; High adds the count that losses may have hidden. High may be [Unknown].
	Low, High int64
	// Estimated reports whether part of the count was sampled (StatsD's @rate). The key is then
	// hot by the total estimated from the samples. Low is the sampled count, and High is unknown,
	// since chance sets no bound to the rest.
	Estimated bool
	// Cause is the threshold in whose window Low and High count. It is the one that made the key
	// hot, or another that still holds it after that one no longer does.
	Cause Cause
	// Also lists the other thresholds that hold the key hot, by kind and window, separated by
	// commas: "share/10s,rate/1h0m0s". A detector that adopts the key continues with them.
	Also string
	// Rate is the recent rate in units of Cause per second. When the key becomes hot, and in a
	// [Change], it is Low over the window. Later, for a window longer than a second, it is the
	// rate of the last second that is known, so it falls when the traffic stops. For an Estimated
	// key it is estimated from the samples.
	Rate float64
	// Ratio is the count divided by the count that the threshold needed: 2 is twice the
	// threshold, whatever its kind and unit. If several thresholds hold the key hot, it is the
	// highest of their ratios. It decides which keys get the places of the published set.
	Ratio float64
	// Since is when the count reached the threshold. Until is when the entry expires unless it is
	// renewed.
	Since, Until time.Time
	// Limit and Burst are the rule's limit of a hot key. Zero means that the key is only watched.
	Limit rules.Rate
	Burst int64
	Mode  rules.Mode
	// Scope selects the instances that share the limit. Empty means ScopeInstance.
	Scope rules.Scope
	// Usual reports whether the count is normal for the key. It is if the key is on nine tenths of
	// its route's requests, or if its count is not far above its mean of ten windows. A usual key
	// never hides an unusual one.
	Usual bool
	// Spared reports whether the key is usual and not limited, because other hot keys that are
	// listed explain its unusual count.
	Spared bool
	// Local reports whether the key is hot in this process alone. Either the process has counted
	// the threshold, and limits the key until the aggregator confirms it or not; or the key is
	// Pinned and nothing else.
	Local bool
	// Pinned reports whether an operator holds the key to its rule's limit. Only instances set
	// it.
	Pinned bool
	// Top lists where the traffic comes from. Nil means not known.
	Top *Attribution
	// Hold says how a key that is hot by its [rules.Cost] is held, and why. Nil for other keys.
	Hold *Hold
	// Released is why a key with a Hold has cooled, in words for people. Empty for other keys.
	Released string
	// Outcomes count the key's requests since it became hot, over all instances. They are a few
	// seconds old. Nil means not known. Only publishers set it.
	Outcomes *FleetOutcomes
	// Owner names the aggregator's shard or partition that published the key.
	Owner string
}

// IsExempt reports whether the key's limit is not asked: the key is Spared, and no operator holds it to
// the limit.
func (h *Hot) IsExempt() bool { return h.Spared && !h.Pinned }

// FleetOutcomes are the outcomes of a hot key's requests over all instances. They are immutable.
type FleetOutcomes struct {
	Outcomes
	// Gone is the part of instances whose heartbeats are no longer in Redis. A successor of the
	// publisher adds the others' to it.
	Gone Outcomes
}

// Hold is the treatment of a key that is hot by its [rules.Cost], and the evidence for it. It is
// immutable.
type Hold struct {
	// Pool is what the key takes the time of: see [rules.Rule.Pool].
	Pool string
	// Permits is the number of requests of all held keys of the pool together that are served at a
	// time, over all instances. Zero serves none.
	Permits int64
	// Stage is how sure it is that the key is the cause.
	Stage HoldStage
	// Share is the part of the pool's time that requests of the key took when the key was first
	// held, of 0 to 1.
	Share float64
	// Each is the time of one request of the key then, and Usual that of one request of the pool
	// before the others became slow.
	Each, Usual time.Duration
	// Slow is the time of one request of the others when the key was first held, and Now their
	// present one.
	Slow, Now time.Duration
}

// Holds reports whether requests of the key need a permit of the pool. It returns false for a nil
// Hold, and for a stage of a later version.
func (h *Hold) Holds() bool { return h != nil && (h.Stage == HoldTrial || h.Stage == HoldKept) }

// HoldStage is how sure it is that a key is the cause of a slow back end.
type HoldStage string

// Stages of a hold.
const (
	HoldTrial     HoldStage = "trial"     // the key is held to see whether the others gain by it
	HoldKept      HoldStage = "kept"      // they did
	HoldSuspected HoldStage = "suspected" // the key is not held, since the limit is in shadow, so nothing proves it
)

// Attribution lists where the requests of a hot key come from and go to: at most
// [MaxOrigins] each, the highest count first. It is immutable.
type Attribution struct {
	Routes, Instances, Callers []Origin
	// Explains is the number of more specific keys of the rule that are hot only because of this
	// key, and are not listed themselves.
	Explains int
}

// MaxOrigins is the most routes, instances and callers that are listed for a hot key.
const MaxOrigins = 5

// MinOriginSpan is the least time over which routes and callers are counted, since an instance
// reports them once a second.
const MinOriginSpan = 2 * time.Second

// Origin is one place where requests of a key come from: at most Count of them, and at least
// Count-Over, in the rule's window. Routes and callers are sampled over at least [MinOriginSpan],
// so their Count is approximate.
type Origin struct {
	Name  string
	Count int64
	Over  int64
}

// Fleet is published by the aggregator in addition to the hot set, so that each instance can
// judge its own counts.
type Fleet struct {
	// Instances is the number of instances that send counts. Zero means not known.
	Instances int
	// Suspects are keys that may be hot, but that the counts do not decide yet.
	Suspects []rules.Key
}

// Instance is a process that sends counts, with the time when it was last heard.
type Instance struct {
	Name  string
	Heard time.Time
}

// Change is a difference between two states of the hot set.
type Change struct {
	Hot  []Hot // keys that became hot, or whose limit changed
	Cool []Hot // keys that are no longer hot, with their last counts
}

// Empty reports whether nothing changed.
func (c Change) Empty() bool { return len(c.Hot) == 0 && len(c.Cool) == 0 }
