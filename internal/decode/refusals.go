package decode

import (
	"time"

	"github.com/hotparam/hotparam/internal/loglimit"
)

// Refusal is the reason why a packet was not believed.
type Refusal uint8

// Reasons. A packet over a cap comes from a sender that is otherwise believed.
const (
	RefusedUnlisted Refusal = iota // the address is not listed
	RefusedUnsigned                // the packet is not signed
	RefusedMAC                     // signed with none of the keys, or changed
	RefusedTime                    // sent too long before or after its arrival, by its sender's clock
	RefusedReplay                  // it arrived before
	RefusedCounts                  // over [Caps].Counts
	RefusedKeys                    // over [Caps].Keys
	RefusedNames                   // over [Caps].Names or NewNames
	// Refusals is the number of reasons.
	Refusals = iota
)

var refusalWords = [Refusals]string{"unlisted", "unsigned", "bad_mac", "time", "replayed", "counts", "keys", "names"}

// String returns the reason's name in metrics.
func (r Refusal) String() string { return refusalWords[r] }

// refusalHints suggest what to do if the sender is one of ours.
var refusalHints = [Refusals]string{
	RefusedUnlisted: "is it missing in aggregator.senders?",
	RefusedUnsigned: "does the sender have the key, and send straight to this port?",
	RefusedMAC:      "does the sender have another key?",
	RefusedTime:     "is the clock there wrong?",
	RefusedReplay:   "a replay, or a network that doubles packets",
	RefusedCounts:   "aggregator.caps.counts is what one sender may count in a second",
	RefusedKeys:     "aggregator.caps.keys is how many keys one sender may count in a second",
	RefusedNames:    "aggregator.caps.names is how many instances there may be, new_names how many new ones of an address in a minute",
}

// refusalLog is the least time between two log lines for a reason.
var refusalLog = loglimit.Rate{Burst: 1, Every: 10 * time.Second}
