package decode

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/hotparam/hotparam/internal/loglimit"
)

// refuse counts a packet that is not believed, and logs its sender: the instance, if that is
// certain, and an address.
func (d *Decoder) refuse(why PacketRefusal, from netip.Addr, instance string, more ...any) {
	d.stats.Refused[why].Add(1)
	if why != RefusedReplay { // a network that doubles packets causes it too
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
	d.trust.Log.Warn("refused packets: "+refusalHints[why], args...)
}

// source returns the address that the packet came from, or the zero address.
func (d *Decoder) source() netip.Addr {
	if d.peer == nil {
		return netip.Addr{}
	}
	return d.peer()
}

// PacketRefusal is the reason why a packet was not believed.
type PacketRefusal uint8

// Reasons. A packet over a cap comes from a sender that is otherwise believed.
const (
	RefusedUnlisted PacketRefusal = iota // the address is not listed
	RefusedUnsigned                      // the packet is not signed
	RefusedMAC                           // signed with none of the keys, or changed
	RefusedTime                          // sent too long before or after its arrival, by its sender's clock
	RefusedReplay                        // it arrived before
	RefusedCounts                        // over [Caps].Counts
	RefusedKeys                          // over [Caps].Keys
	RefusedNames                         // over [Caps].Names or NewNames
	// Refusals is the number of reasons.
	Refusals = iota
)

var refusalWords = [Refusals]string{"unlisted", "unsigned", "bad_mac", "time", "replayed", "counts", "keys", "names"}

// String returns the reason's name in metrics.
func (r PacketRefusal) String() string { return refusalWords[r] }

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
var refusalLog = loglimit.LineRate{Burst: 1, Every: 10 * time.Second}
