package live

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

// A heating begins when a key becomes hot that was not, and ends when it cools. It is told once:
// no event says hot of a key that is hot already. A changed limit, mode or threshold begins no
// heating, nor does a publisher that takes over. Of these the publisher's script decides, since it
// alone sees what a change replaces, and each reader finds the same events.
//
// After Redis has lost its state publishers write all keys again, and the script sees no entries
// that it replaces. Of this the reader decides, by what it has told.

// heatings are the keys that a reader was told are hot. It is not safe for concurrent use.
type heatings struct {
	told map[rules.Key]struct{}
	// before are those told before Redis lost its state, and not yet again.
	before map[rules.Key]struct{}
	lost   time.Time // when the loss was mended, on Redis's clock
}

// maxHeatings bounds how many keys are known. Each of several owners publishes 1,000.
const maxHeatings = 10_000

func newHeatings() heatings { return heatings{told: make(map[rules.Key]struct{})} }

// lose records that Redis has lost its state, and that a publisher writes it again now.
func (h *heatings) lose(now time.Time) {
	h.before, h.told, h.lost = h.told, make(map[rules.Key]struct{}), now
}

// isNews records an event of a hot key, and reports whether it is to be told: it is not if it
// repeats a heating from before a loss. A publisher that has taken over meanwhile may have found
// the key some moments earlier or later than the one before; so since need not be the same.
func (h *heatings) isNews(e *Event) bool {
	key := rules.Key{Rule: e.Rule, Text: e.Key}
	_, known := h.before[key]
	delete(h.before, key)
	if e.Type != Hot {
		delete(h.told, key)
		return true
	}
	if len(h.told) < maxHeatings {
		h.told[key] = struct{}{}
	}
	return !known || e.since.After(h.lost)
}
