package aggregator

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

// VerdictKind is the kind of a decision about a key.
type VerdictKind uint8

// Kinds of verdicts.
const (
	Entered          VerdictKind = iota // a threshold was passed
	Left                                // a threshold no longer holds the key hot
	verdictExplained                    // hot, but not listed: another key explains its traffic
	verdictListed                       // listed after all
	verdictUsual                        // published as usual: the count is always that high
	verdictUnusual                      // no longer usual
	verdictSpared                       // usual and not limited, as another key explains the rise
	verdictUnspared                     // limited again
)

var decisionNames = [...]string{"entered", "left", "explained", "listed", "usual", "unusual", "spared", "unspared"}

// String returns the kind in one word.
func (d VerdictKind) String() string {
	if int(d) < len(decisionNames) {
		return decisionNames[d]
	}
	return "invalid"
}

// Verdict is one decision about a key, with the values that it is based on.
type Verdict struct {
	rules.Key
	Kind      VerdictKind
	Threshold *rules.Threshold // threshold of the rule
	At        time.Time
	// Low and High bound the count in the threshold's window. High may be [published.Unknown]. If
	// the count was sampled, they bound the estimate.
	Low, High int64
	// Against is the count that the low count reached, or that the high count is below.
	Against int64
	// Hold is the earliest time at which an entered key can cool.
	Hold time.Time
	// By is the text of the key that explains this one.
	By string
}
