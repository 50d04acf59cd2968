package bench

import (
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/rules"
)

// exactCounts counts every key in every window exactly, without a bound on memory. [Detect]
// compares with it. A decoder feeds it, as it does the detector.
type exactCounts struct {
	pane  int64 // nanoseconds
	panes int
	ids   map[string]int32
	keys  []referenceKey
	rings []int64 // panes of each key
}

type referenceKey struct {
	last int64 // pane
	sum  int64 // sum of the panes of the window that ends with last
	peak int64 // highest sum so far
}

func newReference(w rules.Window) *exactCounts {
	return &exactCounts{pane: int64(w.Pane), panes: w.Panes, ids: make(map[string]int32)}
}

// Count implements [decode.Handler]. Times must not decrease.
func (r *exactCounts) Count(c decode.Count) {
	pane := c.When.UnixNano() / r.pane
	id, ok := r.ids[string(c.Text)]
	if !ok {
		id = int32(len(r.keys))
		r.ids[string(c.Text)] = id
		r.keys = append(r.keys, referenceKey{last: pane})
		r.rings = append(r.rings, make([]int64, r.panes)...)
	}
	k, ring := &r.keys[id], r.rings[int(id)*r.panes:][:r.panes]
	if pane-k.last >= int64(r.panes) {
		clear(ring)
		k.sum, k.last = 0, pane
	}
	for k.last < pane {
		k.last++
		slot := &ring[k.last%int64(r.panes)]
		k.sum -= *slot
		*slot = 0
	}
	ring[pane%int64(r.panes)] += c.N
	k.sum += c.N
	k.peak = max(k.peak, k.sum)
}

// count returns the key's current count in the window that ends with a pane. The pane must not
// precede the newest one of the key.
func (r *exactCounts) count(text string, pane int64) (sum int64) {
	id, ok := r.ids[text]
	if !ok {
		return 0
	}
	k, ring := &r.keys[id], r.rings[int(id)*r.panes:][:r.panes]
	for p := max(pane, k.last) - int64(r.panes) + 1; p <= min(pane, k.last); p++ {
		sum += ring[p%int64(r.panes)]
	}
	return sum
}

// AddHiddenCounts implements [decode.Handler].
func (*exactCounts) AddHiddenCounts(time.Time, int64) {}

// SetHeldBackBound implements [decode.Handler].
func (*exactCounts) SetHeldBackBound(int, int64, int64) {}

// AddHeldBack implements [decode.Handler].
func (*exactCounts) AddHeldBack(decode.HeldBack) {}

// RecordLoss implements [decode.Handler].
func (*exactCounts) RecordLoss(time.Time) {}

// ReduceLoss implements [decode.Handler].
func (*exactCounts) ReduceLoss(time.Time) {}

// RecordGap implements [decode.Handler].
func (*exactCounts) RecordGap(decode.Gap) {}

// ExcludeFromGap implements [decode.Handler].
func (*exactCounts) ExcludeFromGap(uint64, int, uint64, bool) {}

// AddHealedCount implements [decode.Handler].
func (*exactCounts) AddHealedCount(decode.Count, time.Time) {}

// MoveHealedCount implements [decode.Handler].
func (*exactCounts) MoveHealedCount(decode.Count, time.Time, time.Time) {}
