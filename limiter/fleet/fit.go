package fleet

import (
	"fmt"
	"math"

	"github.com/hotparam/hotparam/rules"
)

// Fit is the number of instances that can hold permits of a limit with [rules.ScopeFleet].
type Fit struct {
	// Instances is the most instances that can hold permits. With more of them, and always if
	// it is zero, each request asks the Lender.
	Instances int
	// Reason completes the sentence "each request asks the Lender:". It is empty if any
	// number of instances can hold permits.
	Reason string
}

// FitOf returns the number of instances that can hold permits of a limit of the rule, or of one of
// its exceptions. The limit must be valid with ScopeFleet, so it has a bucket.
func FitOf(r *rules.Rule, l *rules.Limit) Fit {
	switch {
	case l.Burst == rules.Unlimited || l.Rate.IsZero(): // only concurrency, whose permits instances keep
		return Fit{Instances: math.MaxInt}
	case len(r.Hot) == 0:
		return Fit{Reason: "the rule has no hot"}
	case r.Count != rules.Requests: // a cost is known too late to ask for it
		return Fit{Instances: math.MaxInt}
	case l.WarmUp > 0:
		return Fit{Reason: "warm_up needs it"}
	case l.Shape:
		return Fit{Reason: "shape needs it"}
	case l.Penalty > 0:
		return Fit{Reason: "penalty needs it"}
	}
	return fitOfNumbers(&l.Quota, l.Priority.Classes())
}

// fitOfNumbers returns the number of instances by a quota's rate and burst. The burst must be a
// tenth of the rate per second or more. A period must bring each instance five permits for each
// class of priority, or one if the burst is half of the rate per second or more.
func fitOfNumbers(q *rules.Quota, classes int) Fit {
	rate := perSecond(q)
	if float64(q.Burst) < rate/10 {
		return Fit{Reason: "the burst is less than a tenth of the rate per second"}
	}
	least, permits := 5, "5 permits"
	if float64(q.Burst) >= rate/2 {
		least, permits = 1, "a permit"
	}
	every := period(q, 0)
	return Fit{
		Instances: int(rate*every.Seconds()/float64(least*classes) + 1e-9),
		Reason:    fmt.Sprintf("the rate does not bring each %s in %v", permits, every),
	}
}
