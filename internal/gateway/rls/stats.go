package rls

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/gateway"
	"github.com/hotparam/hotparam/internal/loglimit"
)

// Counters count the calls and connections of a door. N is int64 in [Stats] and [atomic.Int64]
// in a running door.
type Counters[N any] struct {
	gateway.ConnCounters[N]
	// Calls is the number of calls answered. Limited counts those answered OVER_LIMIT.
	Calls, Limited N
	// Ends is the number of descriptors with the entry done.
	Ends N
	// Unusable counts ignored descriptors, or ignored parts of them, by [Fault].
	Unusable [faults]N
	// Busy counts calls refused because too many were in flight. Failed counts calls that
	// could not be read: too large, or not a request of the service. Slow counts calls ended
	// after Config.CallTimeout.
	Busy, Failed, Slow N
	// SlowConnections counts connections closed because HTTP/2 did not begin in time. Nonsense
	// counts connections that began with anything but HTTP/2.
	SlowConnections, Nonsense N
}

// Stats are the counters of a door since it was created.
type Stats = Counters[int64]

type counters = Counters[atomic.Int64]

// Fault is the reason why a descriptor, or a part of it, was ignored.
type Fault uint8

// Faults of descriptors.
const (
	// Incomplete is a descriptor with only one of method and path, in the domain hotparam, or
	// with done and no id. It is ignored.
	Incomplete Fault = iota
	// NoID is a request that holds a permit or counts a cost but has no entry id, so that its
	// end cannot be reported. It is ended at once.
	NoID
	// UnknownEntry is an entry of a request with an unknown key, or a done entry with an
	// unknown unit. The descriptor is used without it.
	UnknownEntry
	// TooMany is a descriptor, an entry or a number of hits that exceeds its maximum. The
	// excess is ignored.
	TooMany
	// Unsupported is a descriptor with negative hits, which is ignored, or with a limit of its
	// own. The latter is used without that limit, because limits come from the rules.
	Unsupported
	faults
)

var faultNames = [faults]string{"incomplete", "no_id", "unknown_entry", "too_many", "unsupported"}

// String returns the fault's name in metrics.
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

// complaints log bad calls and descriptors, at a limited rate for each kind.
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

// add logs a warning. kind is a Fault or one of the complain constants.
func (c *complaints) add(kind int, text string, args ...any) {
	c.lines[kind].Warn(loglimit.Rate{Burst: 2, Every: time.Minute}, c.log, text, args...)
}
