package rls

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/gateway"
	"github.com/hotparam/hotparam/internal/loglimit"
)

// Counters count what a door has done. N is int64 in [Stats], and [atomic.Int64] while they
// count.
type Counters[N any] struct {
	gateway.ConnCounters[N]
	// Calls are those that were answered, and Limited those that were answered OVER_LIMIT.
	Calls, Limited N
	// Ends are descriptors with the entry done.
	Ends N
	// Unusable are descriptors that were left out, by [Fault]. They limit nothing.
	Unusable [faults]N
	// Busy are calls that were refused since there were too many at a time. Failed are those
	// that could not be read: too large, or no request of the service. Slow are those that did
	// not come within Config.CallTimeout.
	Busy, Failed, Slow N
	// SlowConnections are those that were closed since HTTP/2 did not begin in time, and Nonsense
	// those that began with anything else.
	SlowConnections, Nonsense N
}

// Stats are the counters of a door since it was made.
type Stats = Counters[int64]

type counters = Counters[atomic.Int64]

// Fault is why a descriptor, or a part of it, was not used.
type Fault uint8

// Faults of descriptors.
const (
	// Incomplete is a descriptor that has method without path or path without method, for the
	// domain hotparam, or done without id.
	Incomplete Fault = iota
	// NoID is a request that holds a permit or counts a cost, and has no entry id by which its
	// end could be told. It is ended at once.
	NoID
	// UnknownEntry is an entry of a request whose key says nothing, or a unit of done that
	// there is not. The descriptor is used without it.
	UnknownEntry
	// TooMany are descriptors or entries beyond what a call may have, and hits beyond what one
	// descriptor may add. The rest is used.
	TooMany
	// Unsupported is a descriptor with negative hits, or with a limit of its own: limits are
	// those of the rules. The former is left out, and the latter used without its limit.
	Unsupported
	faults
)

var faultNames = [faults]string{"incomplete", "no_id", "unknown_entry", "too_many", "unsupported"}

// String returns the fault in one word, as metrics name it.
func (f Fault) String() string {
	if f < faults {
		return faultNames[f]
	}
	return "invalid"
}

// Faults returns all faults.
func Faults() []Fault {
	all := make([]Fault, faults)
	for i := range all {
		all[i] = Fault(i)
	}
	return all
}

// complaints log what is wrong, each kind a few times an hour.
type complaints struct {
	log   *slog.Logger
	lines [faults + 3]loglimit.Limit
}

// Kinds of complaints that are not faults of descriptors.
const (
	complainBusy = int(faults) + iota
	complainFailed
	complainSlow
)

// add logs a line. kind is a Fault or one of the complain constants.
func (c *complaints) add(kind int, text string, args ...any) {
	c.lines[kind].Warn(loglimit.Rate{Burst: 2, Every: time.Minute}, c.log, text, args...)
}
