package hotkeys

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// fleetState is the fleet as last published. It is not safe for concurrent use.
type fleetState struct {
	instances int
	digest    string // digest of the suspects, or unsure
	suspects  map[string]rules.Key
	revision  uint64 // number that grows with every change of the suspects
}

// unsure is the digest of no set. While it is set, the next poll reads the suspects.
const unsure = "?"

func (f *fleetState) unknown() bool { return f.instances == 0 && len(f.suspects) == 0 }

// replace replaces the fleet by the beat and members read from Redis. If the members' digest
// differs from that of the heartbeat, publishers did not write them, and the next poll reads them
// again.
func (f *fleetState) replace(beat published.Beat, members []string) {
	f.instances, f.digest = beat.Instances, beat.Suspects
	if digest(slices.Values(members)) != beat.Suspects {
		f.digest = unsure
	}
	f.suspects = make(map[string]rules.Key, len(members))
	f.revision++
	for _, member := range members {
		if key, ok := rules.ParseKey(member); ok {
			f.suspects[member] = key
		}
	}
}

// applyChange applies a pushed change. A change that does not follow the present state may be
// older than it; the next poll then corrects the state.
func (f *fleetState) applyChange(c *published.FleetChange) {
	if c.Whole && c.Suspects == f.digest {
		return // it is known already
	}
	f.instances = c.Instances
	if f.suspects == nil {
		f.suspects = make(map[string]rules.Key)
	}
	follows := c.Whole && c.Was == f.digest
	f.digest = unsure
	f.revision++
	if follows {
		f.digest = c.Suspects
		for _, key := range c.Over {
			delete(f.suspects, key.String())
		}
	}
	for _, key := range c.New {
		if len(f.suspects) < published.MaxSuspects {
			f.suspects[key.String()] = key
		}
	}
	if follows && digest(maps.Keys(f.suspects)) != c.Suspects {
		f.digest = unsure // no publisher pushed this
	}
}

// digest returns the digest of a set of members, as the publisher's script computes it.
func digest(members iter.Seq[string]) string {
	var hashes []string
	for member := range members {
		hashes = append(hashes, sha1Hex(member))
	}
	if len(hashes) == 0 {
		return ""
	}
	slices.Sort(hashes)
	return sha1Hex(strings.Join(hashes, ""))
}

func sha1Hex(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// fleetMark identifies a state of the fleet, to find out whether the target has it.
type fleetMark struct {
	instances int
	revision  uint64 // 0 if there are no suspects
}

func (f *fleetState) mark() fleetMark {
	if len(f.suspects) == 0 {
		return fleetMark{instances: f.instances}
	}
	return fleetMark{f.instances, f.revision}
}

// toFleet returns the fleet, with the suspects sorted by key.
func (f *fleetState) toFleet() published.Fleet {
	suspects := slices.SortedFunc(maps.Values(f.suspects), rules.Key.Compare)
	return published.Fleet{Instances: f.instances, Suspects: suspects}
}

// showFleet updates the target's fleet, which is unknown without a heartbeat. The caller
// holds mu.
func (w *Watcher) showFleet(now time.Time) {
	var known fleetState
	if now.Before(w.state.beat) {
		known = w.state.fleet
	}
	if t := known.mark(); t != w.shownFleet {
		w.shownFleet = t
		w.stats.Change(func(s *WatcherStats) { s.Instances, s.Suspects = known.instances, len(known.suspects) })
		w.target.UpdateFleet(known.toFleet())
	}
}

// pollFleet updates the fleet from the heartbeat's value, and reads the suspects if they have
// changed.
func (w *Watcher) pollFleet(ctx context.Context, value string) error {
	beat, err := published.ParseBeat([]byte(value))
	if err != nil {
		beat = published.Beat{} // there is none, or it has no summary of the fleet
	}
	var members []string
	w.mu.Lock()
	same := beat.Suspects == w.state.fleet.digest
	w.mu.Unlock()
	if !same && beat.Suspects != "" {
		if beat, members, err = w.readSuspects(ctx, beat.Instances); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if same {
		w.state.fleet.instances = beat.Instances
	} else {
		w.state.fleet.replace(beat, members)
	}
	w.show()
	return nil
}

// readSuspects reads the suspects together with the heartbeat that has their digest. If they hold
// a foreign value, it returns no suspects and the given number of instances.
func (w *Watcher) readSuspects(ctx context.Context, instances int) (published.Beat, []string, error) {
	call, cancel := w.poller.callContext(ctx)
	defer cancel()
	var value *redis.StringCmd
	var members *redis.StringSliceCmd
	err := Transact(call, w.client, func(tx redis.Pipeliner) {
		value = tx.Get(call, w.layout.Beat)
		members = tx.ZRevRange(call, w.layout.Suspects, 0, published.MaxSuspects-1)
	})
	switch {
	case errors.Is(err, ErrForeign): // the next poll reads them again
		w.reportForeign(err)
		return published.Beat{Instances: instances, Suspects: unsure}, nil, nil
	case err != nil:
		return published.Beat{}, nil, fmt.Errorf("read the suspects: %w", err)
	}
	beat, err := published.ParseBeat([]byte(value.Val()))
	if err != nil {
		return published.Beat{}, nil, nil
	}
	return beat, members.Val(), nil
}
