package live

import "slices"

// Backlog is how many events a view keeps, for readers that come back.
const Backlog = 1000

// Subscription gives one reader the events of a view, in order.
type Subscription struct {
	view *View
	c    chan Delivery
	lost uint64 // since the last delivery; guarded by view.mu
}

// Delivery is an event for one reader.
type Delivery struct {
	Event
	// Lost is how many events before this one the reader did not get, as it was too slow.
	Lost uint64
}

// Subscribe returns the events from now on. At most buffer of them wait for the reader;
// further ones are lost, and counted in the next [Delivery]. The caller calls
// [Subscription.Close].
func (v *View) Subscribe(buffer int) *Subscription {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.subscribe(buffer)
}

func (v *View) subscribe(buffer int) *Subscription {
	s := &Subscription{view: v, c: make(chan Delivery, max(1, buffer))}
	if v.readers[s] = struct{}{}; v.over {
		v.end(s)
	}
	return s
}

// Resume is [View.Subscribe] for a reader that has seen the event with this ID, and all
// before it. missed are the events that it has not seen. complete is false if there were
// others that the view does not know any more, or if the ID is none.
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

// Recent returns the newest n events that the view knows, the oldest first.
func (v *View) Recent(n int) []Event {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.backlog[max(0, len(v.backlog)-n):])
}

// Events returns the channel of the events. It is closed by [Subscription.Close], and when
// the view ends.
func (s *Subscription) Events() <-chan Delivery { return s.c }

// Close ends the subscription. It may be called again.
func (s *Subscription) Close() {
	s.view.mu.Lock()
	defer s.view.mu.Unlock()
	s.view.end(s)
}

// end closes a subscription. The caller holds mu.
func (v *View) end(s *Subscription) {
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

// tell adds events to the backlog and passes them to all readers. gap reports whether events
// before these are missing.
func (v *View) tell(events []Event, gap bool) {
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
