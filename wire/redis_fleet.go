package wire

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hotparam/hotparam/rules"
)

// Bounds of what is published about a fleet.
const (
	MaxSuspects  = 1000    // of one namespace
	MaxInstances = 100_000 // of one namespace
	// maxDigest bounds the digest of the suspects; the script's are 40 hex digits.
	maxDigest = 64
)

// Beat is the value of the publishers' heartbeat: the fleet in short. The
// publisher's script writes it:
//
//	{"instances":20,"suspects":"da39a3ee5e6b4b0d3255bfef95601890afd80709"}
type Beat struct {
	// Instances is how many send counts.
	Instances int
	// Suspects is a digest of the suspects, whatever their rates; empty: there
	// are none.
	Suspects string
}

var errBeat = errors.New("wire: heartbeat: instances or the digest of the suspects is out of range")

// ParseBeat reads a heartbeat.
func ParseBeat(value []byte) (Beat, error) {
	var raw struct {
		Instances int    `json:"instances"`
		Suspects  string `json:"suspects"`
	}
	if err := json.Unmarshal(value, &raw); err != nil {
		return Beat{}, fmt.Errorf("wire: heartbeat: %w", err)
	}
	if raw.Instances < 0 || raw.Instances > MaxInstances || len(raw.Suspects) > maxDigest {
		return Beat{}, errBeat
	}
	return Beat(raw), nil
}

// FleetChange is a change of the suspects as it is pushed, on the channel of the
// hot set's changes. The publisher's script writes it, on one line:
//
//	{"version":"6f1c0a2b9d3e4f58:42","fleet":{"instances":20,
//	 "was":"da39…","suspects":"3f78…","new":["search-terms GET /search?q=phone"],"over":["search-terms GET /search?q=tablet"]}}
//
// Version is that of the hot set, which a change of the suspects leaves as it
// is: a reader that does not know the field fleet takes the message for the
// version alone. A change that is too long for one message comes as several
// that have no digests and nothing but new: then the poll reads the rest.
type FleetChange struct {
	// Instances is how many send counts.
	Instances int
	// Was and Suspects are the digests before and after; as in [Beat].
	Was, Suspects string
	// Whole reports whether this is all that lies between the digests.
	Whole bool
	// New are suspects, Over are so no longer.
	New, Over []rules.Key
}

type fleetChange struct {
	Instances int      `json:"instances"`
	Was       *string  `json:"was"`
	Suspects  *string  `json:"suspects"`
	New       []string `json:"new"`
	Over      []string `json:"over"`
}

var errFleet = errors.New("instances, a digest or the number of suspects is out of range")

func (raw *fleetChange) change() (*FleetChange, error) {
	if raw == nil {
		return nil, nil
	}
	f := &FleetChange{Instances: raw.Instances}
	if raw.Was != nil && raw.Suspects != nil {
		f.Was, f.Suspects, f.Whole = *raw.Was, *raw.Suspects, true
	}
	if f.Instances < 0 || f.Instances > MaxInstances || len(f.Was) > maxDigest || len(f.Suspects) > maxDigest ||
		len(raw.New) > MaxSuspects || len(raw.Over) > MaxSuspects {
		return nil, errFleet
	}
	var err error
	if f.New, err = parseMembers(raw.New); err != nil {
		return nil, err
	}
	f.Over, err = parseMembers(raw.Over)
	return f, err
}
