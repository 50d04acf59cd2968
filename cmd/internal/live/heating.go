package live

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

// A heating begins when a key that was not hot becomes hot, and ends when it cools. It is
// reported once: a key that is already hot gets no further event. A changed limit, mode or
// threshold begins no heating, and neither does a publisher that takes over. The publisher's
// script decides these cases, since it alone sees the entry that a change replaces. So all
// readers see the same events.
//
// After Redis has lost its state, publishers write all keys again, and the script finds no
// entries to replace. Then the reader decides, by the heatings that it has reported.

// heatings are the keys that are hot by the events that a reader has reported. They are not safe
// for concurrent use.
type heatings struct {
	reported map[rules.Key]struct{}
	// before are the keys reported before Redis lost its state and not yet reported again.
	before map[rules.Key]struct{}
	lost   time.Time // time at which publishers wrote the state again, on Redis's clock
}

// maxHeatings bounds the number of keys. Each of several owners publishes 1,000.
const maxHeatings = 10_000

func newHeatings() heatings { return heatings{reported: make(map[rules.Key]struct{})} }

// startOver records that Redis lost its state, and that a publisher writes it again at now.
func (h *heatings) startOver(now time.Time) {
	h.before, h.reported, h.lost = h.reported, make(map[rules.Key]struct{}), now
}

// isNews records an event of a hot key, and reports whether it is to be reported: not if it
// repeats a heating from before a loss. A publisher that has taken over since may date the
// heating a little earlier or later than the previous publisher, so the two values of since may
// differ.
func (h *heatings) isNews(e *Event) bool {
	key := rules.Key{Rule: e.Rule, Text: e.Key}
	_, known := h.before[key]
	delete(h.before, key)
	if e.Type != Hot {
		delete(h.reported, key)
		return true
	}
	if len(h.reported) < maxHeatings {
		h.reported[key] = struct{}{}
	}
	return !known || e.since.After(h.lost)
}
