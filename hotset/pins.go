package hotset

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

// SetPins replaces the pinned keys. A pinned key is hot in this process even if it is neither
// published nor marked. If it is published or marked, that entry is in force instead of the pin,
// with Pinned set.
func (s *Set[P]) SetPins(pins []rules.Hot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(pins) == 0 && len(s.pins) == 0 {
		return
	}
	now := time.Now()
	was := s.pins
	s.pins = make(map[string]rules.Hot, len(pins))
	for _, h := range pins {
		h.Local, h.Pinned = true, true
		s.pins[h.Key.String()] = h
	}
	for member, pin := range s.pins {
		e, ok := s.entries[member]
		if _, marked := s.marks[member]; ok && (!e.Hot.Local || marked) {
			pin = e.Hot
		}
		s.putEntry(pin, now)
	}
	for member := range was {
		if _, still := s.pins[member]; still {
			continue
		}
		e := s.entries[member]
		if _, marked := s.marks[member]; !e.Hot.Local || marked {
			s.putEntry(e.Hot, now)
		} else {
			s.drop(member, now)
		}
	}
	s.swap(now)
}
