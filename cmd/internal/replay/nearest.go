package replay

import (
	"cmp"
	"slices"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// nearest keeps the few keys that are most similar to a text.
type nearest struct {
	to    string
	found []near
}

type near struct {
	rules.Key
	distance int
}

// maxNearest is the number of keys that are kept.
const maxNearest = 5

func (n *nearest) add(key rules.Key) {
	far := len(n.to) + len(key.Text)
	if len(n.found) == maxNearest {
		far = n.found[maxNearest-1].distance
	}
	d := base.EditDistance(n.to, key.Text, far)
	if d >= far {
		return
	}
	i, _ := slices.BinarySearchFunc(n.found, d+1, func(x near, d int) int { return cmp.Compare(x.distance, d) })
	n.found = slices.Insert(n.found, i, near{key, d})
	n.found = n.found[:min(len(n.found), maxNearest)]
}

func (n *nearest) keys() (keys []rules.Key) {
	for _, x := range n.found {
		keys = append(keys, x.Key)
	}
	return keys
}
