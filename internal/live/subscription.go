package live

import "slices"

// Backlog is the number of events that a view keeps for readers that reconnect.
const Backlog = 1000

// Subscription delivers the events of a view to one reader, in order.
type Subscription struct {
	view *View
	c    chan Delivery
	lost uint64 // events lost since the last delivery; guarded by view.mu
}

// Delivery is an event for one reader.
type Delivery struct {
	Event
	// Lost is the number of events before this one that the reader missed because it was too
	// slow.
	Lost uint64
}

// Subscribe returns a subscription to the events from now on. At most buffer of them wait for
// the reader. Further ones are lost, and counted in the next [Delivery]. The caller must call
// [Subscription.Close].
func (v *View) Subscribe(buffer int) *Subscription {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.subscribe(buffer)
}

func (v *View) subscribe(buffer int) *Subscription {
	s := &Subscription{view: v, c: make(chan Delivery, max(1, buffer))}
	if v.readers[s] = struct{}{}; v.over {
		v.closeSubscription(s)
	}
	return s
}

// Resume is like [View.Subscribe], for a reader that has seen the event with this ID and all
// before it. missed holds the events that it has not seen. complete is false if the view no
// longer has all of them, or if id is malformed.
func (v *View) Resume(buffer int, id string) (s *Subscription, missed []Event, complete bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s = v.subscribe(buffer)
	seen, err := parsePosition(id)
	if err != nil {
		return s, slices.Clone(v.backlog), false
	}
	first, known := slices.BinarySearchFunc(v.backlog, seen, func(e Event, p position) int { return e.position.compare(p) })
	if known {
		first++
	}
	return s, slices.Clone(v.backlog[first:]), known || v.whole && first > 0
}

// Recent returns the newest n events of the backlog, the oldest first.
func (v *View) Recent(n int) []Event {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.backlog[max(0, len(v.backlog)-n):])
}

// Events returns the channel of the events. It is closed by [Subscription.Close], and when
// the view ends.
func (s *Subscription) Events() <-chan Delivery { return s.c }

// Close ends the subscription. Further calls do nothing.
func (s *Subscription) Close() {
	s.view.mu.Lock()
	defer s.view.mu.Unlock()
	s.view.closeSubscription(s)
}

// closeSubscription closes a subscription. The caller holds mu.
func (v *View) closeSubscription(s *Subscription) {
	if _, ok := v.readers[s]; ok {
		delete(v.readers, s)
		close(s.c)
	}
}

// deliver passes an event to a reader, or counts it as lost. The caller holds mu.
func (s *Subscription) deliver(e Event) {
	select {
	case s.c <- Delivery{Event: e, Lost: s.lost}:
		s.lost = 0
	default:
		s.lost++
	}
}

// addEvents adds events to the backlog and passes them to all readers. gap reports whether events
// before them are missing.
func (v *View) addEvents(events []Event, gap bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if gap {
		v.backlog, v.whole = nil, false
	}
	v.backlog = append(v.backlog, events...)
	if over := len(v.backlog) - Backlog; over > 0 {
		v.backlog = slices.Clone(v.backlog[over:])
		v.whole = false
	}
	for s := range v.readers {
		for i := range events {
			s.deliver(events[i])
		}
	}
}
