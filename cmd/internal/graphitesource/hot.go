package graphitesource

import (
	"maps"
	"slices"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// hotSet is a publisher that records which keys are hot. It is not safe for concurrent use.
type hotSet struct {
	aggregator.Publisher
	keys map[rules.Key]struct{}

	isHeld    bool
	published map[rules.Key]struct{}      // keys that were hot when it was held
	changed   map[rules.Key]published.Hot // last change of each key since
}

// holdChanges keeps changes back until release, which publishes the net change of each key.
func (h *hotSet) holdChanges() {
	h.isHeld, h.published, h.changed = true, maps.Clone(h.keys), make(map[rules.Key]published.Hot)
}

func (h *hotSet) release() {
	var change published.Change
	for key, entry := range h.changed {
		_, isHot := h.keys[key]
		_, wasHot := h.published[key]
		switch {
		case isHot:
			change.Hot = append(change.Hot, entry)
		case wasHot:
			change.Cool = append(change.Cool, entry)
		}
	}
	h.isHeld, h.published, h.changed = false, nil, nil
	if !change.Empty() {
		h.Publisher.Publish(change)
	}
}

// Publish implements [aggregator.Publisher].
func (h *hotSet) Publish(c published.Change) {
	for i := range c.Hot {
		h.keys[c.Hot[i].Key] = struct{}{}
	}
	for i := range c.Cool {
		delete(h.keys, c.Cool[i].Key)
	}
	if !h.isHeld {
		h.Publisher.Publish(c)
		return
	}
	for _, all := range [][]published.Hot{c.Hot, c.Cool} {
		for i := range all {
			h.changed[all[i].Key] = all[i]
		}
	}
}

// sorted returns the keys in a fixed order.
func (h *hotSet) sorted() []rules.Key {
	keys := make([]rules.Key, 0, len(h.keys))
	for key := range h.keys {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, rules.Key.Compare)
	return keys
}
