package aggregator

import (
	"cmp"
	"slices"

	"github.com/hotparam/hotparam/rules"
)

// rank ranks the keys by the window that ends with a pane.
func (t *threshold) rank(pane int64) {
	v, k := t.view, &t.ranking
	lacks, before := v.LacksAny(pane), v.Unlisted(pane) // keys without a count here may have earlier ones
	k.lows, k.highs, k.pane, k.floor = k.lows[:0], k.highs[:0], pane, v.FloorAt(pane)+max(0, lacks)+max(0, before)
	k.unknown = v.NamesRanOut(pane) || lacks == rules.Unknown || before == rules.Unknown
	v.Each(0, func(i int32) {
		low, high := v.Bounds(i, pane)
		if low >= t.Rate.N {
			k.lows = append(k.lows, low)
		}
		switch { // a key with a lower low count may still have as many
		case high == rules.Unknown:
			k.unknown = true
		case high >= t.Rate.N:
			k.highs = append(k.highs, high)
		}
	})
	slices.SortFunc(k.lows, descending)
	slices.SortFunc(k.highs, descending)
}

// rankEarlier returns the ranking of the keys by a window before the newest.
func (t *threshold) rankEarlier(pane int64) ranking {
	if past, ok := t.earlier[pane]; ok {
		return past
	}
	newest := t.ranking
	t.ranking = ranking{}
	t.rank(pane)
	past := t.ranking
	t.ranking = newest
	if t.earlier == nil {
		t.earlier = make(map[int64]ranking)
	}
	t.earlier[pane] = past
	return past
}

func descending(a, b int64) int { return cmp.Compare(b, a) }

// ranked raises n to the counts that separate entry i from the others: a key is among the top k
// if fewer than k others can have as many.
func (t *threshold) ranked(n *needs, i int32) {
	k := &t.ranking
	low, high := t.view.Bounds(i, k.pane) // part of the ranking, if they reach the least count
	if k.unknown {
		n.enter = rules.Unknown
	} else {
		if k.floor > 0 { // a key that is not in the ranking may have that much
			n.enter = max(n.enter, t.Rate.N+k.floor)
		}
		if rival, ok := kth(k.highs, t.Threshold.Top, high, high >= t.Rate.N); ok {
			n.enter = max(n.enter, rival+1)
		}
	}
	if rival, ok := kth(k.lows, t.Threshold.Top, low, low >= t.Rate.N); ok {
		n.maybe = max(n.maybe, rival+1)
		n.exit = max(n.exit, rules.ScaleUp(rival, t.Exit))
	}
}

// kth returns the k-th highest of counts, leaving out count if among is true.
func kth(counts []int64, k int, count int64, among bool) (int64, bool) {
	if among && k <= len(counts) && count >= counts[k-1] {
		k++
	}
	if k > len(counts) {
		return 0, false
	}
	return counts[k-1], true
}
