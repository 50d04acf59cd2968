package graphitesource

import (
	"cmp"
	"maps"
	"slices"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/aggregator"
)

// hotSet is a publisher that records which keys are hot. It must not be used by several
// goroutines at a time.
type hotSet struct {
	aggregator.Publisher
	keys map[hotparam.Key]struct{}

	isHeld    bool
	published map[hotparam.Key]struct{}     // as keys were when that began
	changed   map[hotparam.Key]hotparam.Hot // since
}

// hold keeps changes back until release, which publishes what is left of them.
func (h *hotSet) hold() {
	h.isHeld, h.published, h.changed = true, maps.Clone(h.keys), make(map[hotparam.Key]hotparam.Hot)
}

func (h *hotSet) release() {
	var change hotparam.Change
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
func (h *hotSet) Publish(c hotparam.Change) {
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
	for _, all := range [][]hotparam.Hot{c.Hot, c.Cool} {
		for i := range all {
			h.changed[all[i].Key] = all[i]
		}
	}
}

// sorted returns the keys in a fixed order.
func (h *hotSet) sorted() []hotparam.Key {
	keys := make([]hotparam.Key, 0, len(h.keys))
	for key := range h.keys {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b hotparam.Key) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Text, b.Text))
	})
	return keys
}
