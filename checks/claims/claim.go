package claims

// Claim is one of the claims in docs/design/aggregator.md.
type Claim int

// The claims, each described by its violation.
const (
	LowAbove   Claim = iota // low is above the truth
	HighBelow               // high is below the truth
	FalseHot                // hot with a low below the threshold, or without reason
	Missed                  // truth ≥ threshold + floor, and not hot within a flush and the lag
	Untold                  // truth ≥ threshold > floor, and not even suspect
	CoolEarly               // cooled although the truth is not below the exit
	HoldBroken              // cooled within the hold
	NotInTurn               // hot twice, or cool without hot
	Flapping                // more changes than the rule allows
	Stuck                   // still hot long after all counts stopped
	Inexact                 // no budget bound and nothing was lost, and the bounds are apart
	Uncounted               // the sums of counts and packets do not agree
	Refused                 // a packet that came once and in time was rejected
	TooSlow                 // hot too late
	OverBudget              // more memory, lines or allocations than allowed
	claims
)

var claimNames = [claims]string{"low above truth", "high below truth", "false hot", "missed", "not even suspect", "cool too early",
	"hold broken", "not in turn", "flapping", "stuck", "inexact", "uncounted", "refused", "too slow", "over budget"}

// String describes the violation in a few words.
func (c Claim) String() string { return claimNames[c] }
