package hotkeys

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/wire"
)

// fleetState is what the aggregator last published of the fleet. It is not safe for
// concurrent use.
type fleetState struct {
	instances int
	digest    string // of the suspects that are held; if it is unsure they are to be read
	suspects  map[string]hotparam.Key
	revision  uint64 // rises with every change of the suspects
}

// unsure is the digest of no set: the poll reads the suspects.
const unsure = "?"

func (f *fleetState) unknown() bool { return f.instances == 0 && len(f.suspects) == 0 }

// replace makes these the suspects.
func (f *fleetState) replace(beat wire.Beat, members []string) {
	f.instances, f.digest = beat.Instances, beat.Suspects
	f.suspects = make(map[string]hotparam.Key, len(members))
	f.revision++
	for _, member := range members {
		if key, ok := hotparam.ParseKey(member); ok {
			f.suspects[member] = key
		}
	}
}

// apply makes a change that was pushed. One that does not follow what is held
// may be older than that: the poll puts right what it gets wrong.
func (f *fleetState) apply(c *wire.FleetChange) {
	if c.Whole && c.Suspects == f.digest {
		return // it was read already
	}
	f.instances = c.Instances
	if f.suspects == nil {
		f.suspects = make(map[string]hotparam.Key)
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
		if len(f.suspects) < wire.MaxSuspects {
			f.suspects[key.String()] = key
		}
	}
	if follows && digest(f.suspects) != c.Suspects {
		f.digest = unsure // whoever pushed this is none of ours
	}
}

// digest is that of the publisher's script, but where a locale of Redis sorts in
// another order: then each push of suspects is followed by a read.
func digest(suspects map[string]hotparam.Key) string {
	if len(suspects) == 0 {
		return ""
	}
	sum := sha1.Sum([]byte(strings.Join(slices.Sorted(maps.Keys(suspects)), "\n")))
	return hex.EncodeToString(sum[:])
}

// fleetMark identifies a state of the fleet: the target has it if its mark is the same.
type fleetMark struct {
	instances int
	revision  uint64 // 0: no suspects
}

func (f *fleetState) mark() fleetMark {
	if len(f.suspects) == 0 {
		return fleetMark{instances: f.instances}
	}
	return fleetMark{f.instances, f.revision}
}

// toFleet returns the fleet, with the suspects in the order of their keys.
func (f *fleetState) toFleet() hotparam.Fleet {
	suspects := make([]hotparam.Key, 0, len(f.suspects))
	for _, key := range f.suspects {
		suspects = append(suspects, key)
	}
	slices.SortFunc(suspects, func(a, b hotparam.Key) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Text, b.Text))
	})
	return hotparam.Fleet{Instances: f.instances, Suspects: suspects}
}

// showFleet updates the target's fleet. Without a heartbeat nothing is known of it. The
// caller holds mu.
func (w *Watcher) showFleet(now time.Time) {
	var known fleetState
	if now.Before(w.state.beat) {
		known = w.state.fleet
	}
	if t := known.mark(); t != w.shownFleet {
		w.shownFleet = t
		w.stats.instances.Store(int64(known.instances))
		w.stats.suspects.Store(int64(len(known.suspects)))
		w.target.UpdateFleet(known.toFleet())
	}
}

// pollFleet follows what the heartbeat says of the fleet, and reads the suspects if they
// have changed.
func (w *Watcher) pollFleet(ctx context.Context, value string) error {
	beat, err := wire.ParseBeat([]byte(value))
	if err != nil {
		beat = wire.Beat{} // none, or of a publisher that tells nothing of the fleet
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

// readSuspects reads the suspects, and the heartbeat that tells of them; where they
// cannot be read there are none for now, and so many instances as are known.
func (w *Watcher) readSuspects(ctx context.Context, instances int) (wire.Beat, []string, error) {
	call, cancel := w.call(ctx)
	defer cancel()
	var value *redis.StringCmd
	var members *redis.StringSliceCmd
	err := transact(call, w.client, func(tx redis.Pipeliner) {
		value = tx.Get(call, w.layout.Beat)
		members = tx.ZRevRange(call, w.layout.Suspects, 0, wire.MaxSuspects-1)
	})
	switch {
	case errors.Is(err, errForeign): // they are read again by the next poll
		w.reportForeign(err)
		return wire.Beat{Instances: instances, Suspects: unsure}, nil, nil
	case err != nil:
		return wire.Beat{}, nil, fmt.Errorf("read the suspects: %w", err)
	}
	beat, err := wire.ParseBeat([]byte(value.Val()))
	if err != nil {
		return wire.Beat{}, nil, nil
	}
	return beat, members.Val(), nil
}
