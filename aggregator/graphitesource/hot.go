package graphitesource

import (
	"cmp"
	"slices"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/aggregator"
)

// hotSet is a publisher that records which keys are hot. It must not be used by several
// goroutines at a time.
type hotSet struct {
	aggregator.Publisher
	keys map[hotparam.Key]struct{}
}

// Publish implements [aggregator.Publisher].
func (h *hotSet) Publish(c hotparam.Change) {
	for i := range c.Hot {
		h.keys[c.Hot[i].Key] = struct{}{}
	}
	for i := range c.Cool {
		delete(h.keys, c.Cool[i].Key)
	}
	h.Publisher.Publish(c)
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
