package replay

import (
	"cmp"
	"slices"

	"github.com/hotparam/hotparam/rules"
)

// nearest keeps the few keys that are most similar to a text.
type nearest struct {
	to    string
	found []near
	rows  [2][]int
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
	if d := abs(len(n.to) - len(key.Text)); d >= far {
		return // the difference in length is a lower bound
	}
	d := n.distance(key.Text)
	if d >= far && len(n.found) == maxNearest {
		return
	}
	i, _ := slices.BinarySearchFunc(n.found, d+1, func(x near, d int) int { return cmp.Compare(x.distance, d) })
	n.found = slices.Insert(n.found, i, near{key, d})
	n.found = n.found[:min(len(n.found), maxNearest)]
}

func abs(n int) int { return max(n, -n) }

// distance returns the number of bytes to insert, delete or change that turns one text into the
// other (Levenshtein 1966).
func (n *nearest) distance(text string) int {
	before, row := n.rows[0][:0], n.rows[1]
	for j := range len(text) + 1 {
		before = append(before, j)
	}
	for i := range len(n.to) {
		row = append(row[:0], i+1)
		for j := range len(text) {
			change := before[j]
			if n.to[i] != text[j] {
				change++
			}
			row = append(row, min(change, before[j+1]+1, row[j]+1))
		}
		before, row = row, before
	}
	n.rows = [2][]int{before, row}
	return before[len(text)]
}

func (n *nearest) keys() (keys []rules.Key) {
	for _, x := range n.found {
		keys = append(keys, x.Key)
	}
	return keys
}
