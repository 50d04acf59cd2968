package hotkeys

import (
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/wire"
)

// state is the published set as the watcher last knew it, with ends on the
// local monotonic clock. Not safe for concurrent use.
type state struct {
	version wire.HotVersion
	entries map[string]*heldEntry // by member
	fleet   fleetState
	beat    time.Time  // the heartbeat is good until then
	clock   redisClock // as of the last poll

	// What the target has since the last change, and what came since.
	inForce int       // entries
	alive   bool      // the heartbeat was good
	end     time.Time // until then nothing goes out of force by itself
	fresh   []string  // members granted since
	gone    []string  // members that the target has and entries do not
	missed  int       // entries that are missed
}

// heldEntry is one entry: its Until is local. A member of which no value could ever be
// read is held with a zero Until, so that sizes agree; it is never in force.
type heldEntry struct {
	hot   hotparam.Hot
	ttl   time.Duration // what was left when it was granted
	fresh bool          // granted since the last change
	shown bool          // in force in the target
	// unread: its value in Redis could not be read when it was last. What is held of
	// it was promised until its end.
	unread bool
	// missed: Redis does not have it, as it lost state and the owner has not
	// written since. It is held until that has, and not for long.
	missed bool
}

// redisClock is one reading of Redis's clock. The local instant is that before
// the call, so what is derived from it is rather early than late: a limit must
// not outlive its end.
type redisClock struct{ local, redis time.Time }

// when is the local instant of an event that Redis dated, and that became known
// here at arrival at the latest. A push may have been long on its way, and a
// clock may have been set: the earlier of both readings counts.
func (c redisClock) when(at, arrival time.Time) time.Time {
	if t := c.local.Add(at.Sub(c.redis)); t.Before(arrival) {
		return t
	}
	return arrival
}

// rewriteTime is for how long what Redis lost is awaited.
const rewriteTime = 2 * time.Second

// replace makes the whole set the state. After a loss each owner writes its own part
// again, one after the other: what is not there yet of the others' parts was
// promised, so it stays for now.
func (s *state) replace(version wire.HotVersion, set wholeSet, issued time.Time) {
	began := version.Run != s.version.Run
	unread := make(map[string]bool, len(set.unreadable))
	for _, member := range set.unreadable {
		unread[member] = true
	}
	for member, e := range s.entries {
		switch {
		case unread[member]:
			if e.missed {
				s.missed--
			}
			e.missed, e.unread = false, true
		case !began && !e.missed, set.wrote(e.hot.Owner, version.Run), !issued.Before(e.hot.Until):
			s.remove(member)
		case !e.missed:
			s.markMissing(e, issued.Add(rewriteTime))
		}
	}
	s.version = version
	for _, member := range set.unreadable {
		if s.entries[member] == nil {
			s.entries[member] = &heldEntry{unread: true}
		}
	}
	for _, h := range set.hot {
		s.grant(h, h.Until.Sub(set.at), issued)
	}
}

// markMissing holds an entry that Redis does not have until then at most.
func (s *state) markMissing(e *heldEntry, until time.Time) {
	s.missed++
	e.missed, e.unread, e.ttl = true, false, 0 // there is nothing to be read
	if until.Before(e.hot.Until) {
		e.hot.Until = until
	}
	if e.hot.Until.Before(s.end) {
		s.end = e.hot.Until
	}
}

// grant holds an entry that has ttl left at the local instant issued.
func (s *state) grant(h hotparam.Hot, ttl time.Duration, issued time.Time) {
	h.Until = issued.Add(ttl)
	member := h.Key.String()
	old := s.entries[member]
	if old != nil && old.missed {
		s.missed--
	}
	s.entries[member] = &heldEntry{hot: h, ttl: max(0, ttl), fresh: true, shown: old != nil && old.shown}
	s.fresh = append(s.fresh, member)
}

func (s *state) remove(member string) {
	e := s.entries[member]
	if e == nil {
		return
	}
	if e.shown {
		s.gone = append(s.gone, member)
		s.inForce--
	}
	if e.missed {
		s.missed--
	}
	delete(s.entries, member)
}

// apply makes the change that follows the state's version.
func (s *state) apply(c *wire.HotChange, arrival time.Time) {
	issued := s.clock.when(c.At, arrival)
	for i := range c.Hot {
		s.grant(c.Hot[i].Hot, c.Hot[i].TTL, issued)
	}
	for _, key := range c.Cool {
		s.remove(key.String())
	}
	s.dropRewritten(c)
	s.version = c.Version
	if beat := issued.Add(c.Beat); beat.After(s.beat) {
		s.beat = beat
	}
}

// dropRewritten drops what is missed of an owner that makes a change: its first one after
// a loss has all that it has.
func (s *state) dropRewritten(c *wire.HotChange) {
	if s.missed == 0 {
		return
	}
	owners := make(map[string]bool)
	for i := range c.Hot {
		owners[c.Hot[i].Owner] = true
	}
	for member, e := range s.entries {
		if e.missed && owners[e.hot.Owner] {
			s.remove(member)
		}
	}
}

// nextChange returns what has come into force, has changed or is in force no longer since
// the last call, and when that changes by itself next; zero means never. It costs what
// has changed, unless something has come to its end.
func (s *state) nextChange(now time.Time) (change hotparam.Change, next time.Time) {
	alive := now.Before(s.beat)
	if alive != s.alive || !now.Before(s.end) {
		s.alive, s.end = alive, s.beat
		for _, e := range s.entries {
			s.updateShown(e, now, &change)
		}
	}
	for _, member := range s.fresh {
		if e := s.entries[member]; e != nil && e.fresh {
			s.updateShown(e, now, &change)
		}
	}
	for _, member := range s.gone {
		if e := s.entries[member]; e != nil && e.shown {
			continue // it is back
		}
		if key, ok := hotparam.ParseKey(member); ok {
			change.Cool = append(change.Cool, hotparam.Hot{Key: key})
		}
	}
	s.fresh, s.gone = s.fresh[:0], nil
	if alive && (s.inForce > 0 || !s.fleet.unknown()) {
		next = s.end
		if s.beat.Before(next) {
			next = s.beat
		}
	}
	return change, next
}

// updateShown brings one entry into force or out of it.
func (s *state) updateShown(e *heldEntry, now time.Time, change *hotparam.Change) {
	switch live := s.alive && now.Before(e.hot.Until); {
	case live:
		if !e.shown {
			s.inForce++
		}
		if e.fresh || !e.shown {
			change.Hot = append(change.Hot, e.hot)
		}
		e.shown = true
		if e.hot.Until.Before(s.end) {
			s.end = e.hot.Until
		}
	case e.shown:
		s.inForce--
		change.Cool = append(change.Cool, e.hot)
		e.shown = false
	}
	e.fresh = false
}

// forget lets go of a member that Redis does not have, if its value was never read.
func (s *state) forget(member string) {
	if e := s.entries[member]; e != nil && e.unread && e.hot.Until.IsZero() {
		s.remove(member)
	}
}

// dueForRenewal returns the members with less than half of their time left, whose renewal
// is due to be read, and those that could not be read. Without a heartbeat there are no
// renewals.
func (s *state) dueForRenewal(now time.Time) []string {
	if !now.Before(s.beat) {
		return nil
	}
	var members []string
	for member, e := range s.entries {
		if len(members) < maxCatchUp && (e.unread || e.ttl > 0 && e.hot.Until.Sub(now) < e.ttl/2) {
			members = append(members, member)
		}
	}
	return members
}
