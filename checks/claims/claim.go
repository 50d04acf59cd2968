package claims

// Claim is one of those that docs/design/aggregator.md makes.
type Claim int

// The claims, by the violation.
const (
	LowAbove   Claim = iota // low is above the truth
	HighBelow               // high is below it
	FalseHot                // hot with a low below the threshold, or without reason
	Missed                  // truth ≥ threshold + floor, and not hot within a flush and the lag
	Untold                  // truth ≥ threshold > floor, and not even suspect
	CoolEarly               // cooled although the truth is not below the exit
	HoldBroken              // cooled within the hold
	NotInTurn               // hot twice, or cool without hot
	Flapping                // more changes than the rule allows
	Stuck                   // still hot though all has been silent for long
	Inexact                 // no budget bound and nothing was lost, and the bounds are apart
	Uncounted               // what was counted does not add up
	Refused                 // a packet that came once and in time was not taken
	TooSlow                 // hot later than it must be
	OverBudget              // more memory, lines or allocations than there may be
	claims
)

var claimNames = [claims]string{"low above truth", "high below truth", "false hot", "missed", "not even suspect", "cool too early",
	"hold broken", "not in turn", "flapping", "stuck", "inexact", "uncounted", "refused", "too slow", "over budget"}

// String describes the violation in a few words.
func (c Claim) String() string { return claimNames[c] }
