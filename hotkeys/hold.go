package hotkeys

import (
	"context"
	"strconv"
	"time"
)

// maxHold is the longest time for which hot keys are held; see [Watcher.SetHold].
const maxHold = time.Hour

// holdGrace is how long held entries stay in force after the heartbeat returns. Publishers that
// were cut off renew their entries within two seconds. One that was restarted finds its keys hot
// again when its windows are full.
const holdGrace = 5 * time.Second

// heartbeatHold is the part of a state that outlives the publishers' heartbeat. An entry that is in
// force when the heartbeat expires is held: it stays in force for the span, whatever its own end.
// A publisher's write of the entry ends the hold at once. The publishers' return ends all holds
// after the grace.
type heartbeatHold struct {
	span  time.Duration // length of a hold; zero means that entries expire with the heartbeat
	held  int           // number of held entries
	since time.Time     // start of the first hold; zero if there are none
	grace time.Time     // end of all holds after the heartbeat's return; zero without a heartbeat
}

// updateHold records whether there is a heartbeat. It is called whenever that changes.
func (s *state) updateHold(now time.Time, alive bool) {
	switch {
	case alive && !s.alive:
		s.grace = now.Add(holdGrace)
	case !alive && s.alive:
		s.grace = time.Time{}
		for _, e := range s.entries {
			if s.span > 0 && e.shown && e.heldSince.IsZero() && !e.hot.Until.Before(s.beat) {
				e.heldSince = s.beat
				if s.held++; s.held == 1 {
					s.since = s.beat
				}
			}
		}
	}
}

// letGo ends the hold of an entry, if it is held.
func (s *state) letGo(e *heldEntry) {
	if e.heldSince.IsZero() {
		return
	}
	e.heldSince = time.Time{}
	if s.held--; s.held == 0 {
		s.since = time.Time{}
	}
}

// ends returns the end of the entry as published and the end of its hold. It ends a hold whose
// time has passed.
func (s *state) ends(e *heldEntry, now time.Time) (entryEnd, holdEnd time.Time) {
	if s.alive {
		entryEnd = e.hot.Until
	}
	if e.heldSince.IsZero() {
		return entryEnd, holdEnd
	}
	holdEnd = e.heldSince.Add(s.span)
	if s.alive && s.grace.Before(holdEnd) {
		holdEnd = s.grace
	}
	if !now.Before(holdEnd) {
		s.letGo(e)
	}
	return entryEnd, holdEnd
}

// nextEnd returns an upper bound of the ends of all entries.
func (s *state) nextEnd() time.Time {
	if !s.alive && s.held > 0 {
		return s.since.Add(maxHold)
	}
	return s.beat
}

// setSpan changes how long entries are held, also for those that are held now.
func (s *state) setSpan(span time.Duration) {
	s.span, s.end = span, time.Time{}
}

// SetHold sets how long hot keys stay limited after the publishers' heartbeat, or Redis, is lost.
// It applies to the keys that are hot at that moment. Zero, the default, means until the heartbeat
// expires, some seconds; more than an hour means an hour. A publisher that returns decides at once
// on the keys that it publishes; the holds of the others end some seconds later. While keys are
// held, SetHold changes their end. An operator ends the hold of a key with [CarryOut], if
// Redis can be reached.
func (w *Watcher) SetHold(span time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.setSpan(min(max(0, span), maxHold))
	w.show()
}

// showHold publishes the number of held keys, and logs when holds begin and end. The caller holds
// mu.
func (w *Watcher) showHold() {
	was, s := 0, &w.state
	w.stats.Change(func(shown *WatcherStats) {
		was, shown.Held = shown.Held, s.held
		switch {
		case was == 0 && s.held > 0:
			shown.HeldSince = s.since
		case s.held == 0:
			shown.HeldSince = time.Time{}
		}
	})
	switch {
	case was == 0 && s.held > 0:
		w.holds.Warn(lineRate, w.cfg.Logger, "no aggregator sends heartbeats; hot keys are held and stay limited", "keys", s.held, "for", s.span)
	case was > 0 && s.held == 0:
		w.released = ""
		w.cfg.Logger.Info("hot keys are no longer held", "aggregator", s.alive)
	}
}

// maxReleases bounds the number of control changes that a poll reads.
const maxReleases = 1000

// pollReleases ends the hold of the keys that operators have released since it began.
func (w *Watcher) pollReleases(ctx context.Context) error {
	w.mu.Lock()
	if s := &w.state; w.released == "" {
		w.released = strconv.FormatInt(s.clock.redis.Add(s.since.Sub(s.clock.local)).UnixMilli(), 10)
	}
	after := w.released
	w.mu.Unlock()
	call, cancel := w.poller.callContext(ctx)
	defer cancel()
	events, err := readControlEvents(call, w.client, w.layout, after, maxReleases)
	if err != nil {
		return unlessForeign(err, "read changes of controls", w.reportForeign)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range events {
		w.released = events[i].ID
		if e := w.state.entries[events[i].Control.String()]; e != nil && events[i].Release {
			w.state.letGo(e)
			w.state.end = time.Time{}
		}
	}
	w.show()
	return nil
}
