package hotkeys

import (
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// state is the published set as the watcher last read it, with ends on the local
// monotonic clock. It is not safe for concurrent use.
type state struct {
	version published.Version
	entries map[string]*heldEntry // entries by member
	fleet   fleetState
	beat    time.Time  // time at which the heartbeat expires
	clock   redisClock // reading of the last poll

	// The target's state as of the last nextChange, and the changes since:
	inForce int       // number of entries that the target has
	alive   bool      // the heartbeat had not expired
	end     time.Time // time before which no entry expires
	fresh   []string  // members granted since
	gone    []string  // members that the target has and entries do not
	missed  int       // number of entries that are missed

	heartbeatHold
}

// heldEntry is one entry, with Until on the local clock. If its info could never be read, Until
// is zero and the entry is never in force. It only keeps the number of entries equal to that in
// Redis.
type heldEntry struct {
	hot   published.Hot
	ttl   time.Duration // time left when it was granted
	fresh bool          // granted since the last nextChange
	shown bool          // whether the target has it in force
	// unread is set if the info in Redis could not be read the last time. The entry
	// stays in force until its end.
	unread bool
	// missed is set if Redis has lost the entry, and its owner has not written since. The entry
	// stays in force until the owner writes, for at most rewriteTime.
	missed bool
	// heldSince is when the heartbeat expired that the entry has outlived, or zero.
	heldSince time.Time
}

// redisClock is one reading of Redis's clock. The local time was taken before the call, so ends
// that are derived from it are early rather than late: a limit must not outlive its end.
type redisClock struct{ local, redis time.Time }

// localTime returns the local time of an event that has Redis time redisTime and arrived at
// arrival. It is the earlier of arrival and the converted time, since a push may be delayed and
// a clock may be set.
func (c redisClock) localTime(redisTime, arrival time.Time) time.Time {
	if t := c.local.Add(redisTime.Sub(c.redis)); t.Before(arrival) {
		return t
	}
	return arrival
}

// rewriteTime is how long the watcher waits for owners to rewrite entries that Redis has lost.
const rewriteTime = 2 * time.Second

// replace replaces the state by the whole set. After a loss each owner rewrites its own part of
// the set, at its own time. Entries of owners that have not done so yet stay in force.
func (s *state) replace(version published.Version, set wholeSet, issued time.Time) {
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
		case !began && !e.missed, set.wrote(e.hot.Owner, version.Run), !issued.Before(e.hot.Until) && e.heldSince.IsZero():
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
		s.grant(h, h.Until.Sub(set.readAt), issued)
	}
}

// markMissing marks an entry as missed, and makes it expire at until at the latest.
func (s *state) markMissing(e *heldEntry, until time.Time) {
	s.missed++
	e.missed, e.unread, e.ttl = true, false, 0 // there is nothing to read again
	if until.Before(e.hot.Until) {
		e.hot.Until = until
	}
	if e.hot.Until.Before(s.end) {
		s.end = e.hot.Until
	}
}

// grant adds or replaces an entry that has ttl left at the local time issued.
func (s *state) grant(h published.Hot, ttl time.Duration, issued time.Time) {
	h.Until = issued.Add(ttl)
	member := h.Key.String()
	old := s.entries[member]
	if old != nil && !old.heldSince.IsZero() && ttl <= 0 {
		return // it was written before the outage, and has nothing newer than the entry
	}
	if old != nil && old.missed {
		s.missed--
	}
	if old != nil {
		s.letGo(old)
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
	s.letGo(e)
	delete(s.entries, member)
}

// applyChange applies the change that follows the state's version.
func (s *state) applyChange(c *published.Push, arrival time.Time) {
	issued := s.clock.localTime(c.At, arrival)
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

// dropRewritten drops the missed entries of an owner that makes a change. The first change after
// a loss contains all of the owner's entries.
func (s *state) dropRewritten(c *published.Push) {
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

// nextChange returns the change of the set since the last call, and the time at which the next
// entry expires, or zero if none does. It examines all entries only if one has expired.
func (s *state) nextChange(now time.Time) (change published.Change, next time.Time) {
	alive := now.Before(s.beat)
	if alive != s.alive || !now.Before(s.end) {
		s.updateHold(now, alive)
		s.alive, s.end = alive, s.nextEnd()
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
			continue // it was granted again
		}
		if key, ok := rules.ParseKey(member); ok {
			change.Cool = append(change.Cool, published.Hot{Key: key})
		}
	}
	s.fresh, s.gone = s.fresh[:0], nil
	switch {
	case alive && (s.inForce > 0 || !s.fleet.unknown()):
		next = s.end
		if s.beat.Before(next) {
			next = s.beat
		}
	case !alive && s.held > 0:
		next = s.end
	}
	return change, next
}

// updateShown adds an entry to the change if it has come into force, changed or expired.
func (s *state) updateShown(e *heldEntry, now time.Time, change *published.Change) {
	entryEnd, holdEnd := s.ends(e, now)
	switch live := now.Before(entryEnd) || now.Before(holdEnd); {
	case live:
		if !e.shown {
			s.inForce++
		}
		if e.fresh || !e.shown {
			change.Hot = append(change.Hot, e.hot)
		}
		e.shown = true
		for _, end := range [...]time.Time{entryEnd, holdEnd} {
			if now.Before(end) && end.Before(s.end) {
				s.end = end
			}
		}
	case e.shown:
		s.inForce--
		change.Cool = append(change.Cool, e.hot)
		e.shown = false
	}
	e.fresh = false
}

// forget drops a member that Redis no longer has, if its info was never read.
func (s *state) forget(member string) {
	if e := s.entries[member]; e != nil && e.unread && e.hot.Until.IsZero() {
		s.remove(member)
	}
}

// dueForRenewal returns the members that are unreadable or have less than half of their time
// left. Without a heartbeat it returns none, since no entries are renewed.
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
