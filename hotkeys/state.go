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
	entries map[string]held
	beat    time.Time  // the heartbeat is good until then
	clock   redisClock // as of the last poll
}

// held is one entry: its Until is local. A member whose value could not be
// read is held with a zero ttl, so that sizes agree; it is never in force.
type held struct {
	hot hotparam.Hot
	ttl time.Duration // what was left when it was granted
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

// take makes the whole set the state.
func (s *state) take(version wire.HotVersion, set wholeSet, issued time.Time) {
	s.version = version
	s.entries = make(map[string]held, len(set.hot)+len(set.unreadable))
	for _, member := range set.unreadable {
		s.entries[member] = held{}
	}
	for _, h := range set.hot {
		s.grant(h, h.Until.Sub(set.at), issued)
	}
}

// grant holds an entry that has ttl left at the local instant issued.
func (s *state) grant(h hotparam.Hot, ttl time.Duration, issued time.Time) {
	h.Until = issued.Add(ttl)
	s.entries[h.Key.String()] = held{hot: h, ttl: max(0, ttl)}
}

// apply makes the change that follows the state's version.
func (s *state) apply(c *wire.HotChange, arrival time.Time) {
	issued := s.clock.when(c.At, arrival)
	for i := range c.Hot {
		s.grant(c.Hot[i].Hot, c.Hot[i].TTL, issued)
	}
	for _, key := range c.Cool {
		delete(s.entries, key.String())
	}
	s.version = c.Version
	if beat := issued.Add(c.Beat); beat.After(s.beat) {
		s.beat = beat
	}
}

// inForce is what is hot at now, and when that changes by itself next (zero:
// it does not).
func (s *state) inForce(now time.Time) (hot []hotparam.Hot, next time.Time) {
	if !now.Before(s.beat) {
		return nil, time.Time{}
	}
	next = s.beat
	for _, e := range s.entries {
		if !now.Before(e.hot.Until) {
			continue
		}
		hot = append(hot, e.hot)
		if e.hot.Until.Before(next) {
			next = e.hot.Until
		}
	}
	if len(hot) == 0 {
		return nil, time.Time{}
	}
	return hot, next
}

// ending are the members with less than half of their time left: their renewal
// is due to be read. Without a heartbeat nobody renews.
func (s *state) ending(now time.Time) []string {
	if !now.Before(s.beat) {
		return nil
	}
	var members []string
	for member, e := range s.entries {
		if e.ttl > 0 && e.hot.Until.Sub(now) < e.ttl/2 {
			members = append(members, member)
		}
	}
	return members
}
