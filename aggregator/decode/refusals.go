package decode

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/hotparam/hotparam/internal/loglimit"
)

// Refusal is why a packet was not believed.
type Refusal uint8

// Reasons. What is over a cap comes from a sender that is believed otherwise.
const (
	RefusedUnlisted Refusal = iota // the address is not listed
	RefusedUnsigned                // it is not signed
	RefusedMAC                     // by none of the keys, or it was changed
	RefusedTime                    // it was sent too long before or after it came, by its sender's clock
	RefusedReplay                  // it came before
	RefusedCounts                  // over [Caps].Counts
	RefusedKeys                    // over [Caps].Keys
	RefusedNames                   // over [Caps].Names or NewNames
	// Refusals is how many reasons there are.
	Refusals = iota
)

var refusalWords = [Refusals]string{"unlisted", "unsigned", "bad_mac", "time", "replayed", "counts", "keys", "names"}

// String returns the reason's name in metrics.
func (r Refusal) String() string { return refusalWords[r] }

// hints are what to do, as far as the sender is one of ours.
var refusalHints = [Refusals]string{
	RefusedUnlisted: "is it missing in aggregator.senders?",
	RefusedUnsigned: "does the sender have the key, and send straight to this port?",
	RefusedMAC:      "does the sender have another key?",
	RefusedTime:     "is the clock there wrong?",
	RefusedReplay:   "somebody sends again what came before, or the network does",
	RefusedCounts:   "aggregator.caps.counts is what one sender may count in a second",
	RefusedKeys:     "aggregator.caps.keys is how many keys one sender may count in a second",
	RefusedNames:    "aggregator.caps.names is how many instances there may be, new_names how many new ones of an address in a minute",
}

// refusalLog is how often at most a line is logged for a reason.
var refusalLog = loglimit.Rate{Burst: 1, Every: 10 * time.Second}

// refuse counts a packet that is not believed, and names who sent it: an instance, if
// that is certain, and an address.
func (d *Decoder) refuse(why Refusal, from netip.Addr, instance string, more ...any) {
	d.stats.Refused[why].Add(1)
	if why != RefusedReplay { // which the network does by itself
		d.stats.whyRefused.Store(int64(why))
		d.stats.lastRefused.Store(time.Now().UnixNano())
	}
	if d.trust == nil || d.trust.Log == nil {
		return
	}
	if _, ok := d.trust.Trust.refusals[why].Allow(refusalLog, time.Now()); !ok {
		return
	}
	args := append([]any{slog.String("reason", why.String())}, more...)
	if instance != "" {
		args = append(args, slog.String("instance", instance))
	}
	if from.IsValid() {
		args = append(args, slog.String("from", from.Unmap().String()))
	}
	d.trust.Log.Warn("what was sent is not believed, and dropped: "+refusalHints[why], args...)
}

// source is where the packet at hand came from; the zero address if that is not known.
func (d *Decoder) source() netip.Addr {
	if d.peer == nil {
		return netip.Addr{}
	}
	return d.peer()
}
