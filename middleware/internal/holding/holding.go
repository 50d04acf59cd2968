// Package holding tracks the permits that one instance holds of a quota that a fleet shares.
package holding

import (
	"cmp"
	"slices"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// Holding is the permits that one instance of a fleet holds of the burst of a shared quota. Each
// instance has a part of the quota, which changes with the number of instances. Permits do not
// come with a part: they pass from one instance to another, or are earned at the fleet's rate.
// So all holdings together are at most the burst, whichever instances join, leave or crash, and
// however late the others learn of it.
//
// A part that grows takes over permits that a lost instance may have spent, so its additional
// permits are missing at first. A part that shrinks leaves the instance with permits beyond it.
// They expire in the time that the joining instance takes to earn as many; until then, growing
// the part again restores them.
//
// Two simpler designs were rejected. If parts that grow were full, each crash would grant a
// share. If parts that shrink lost the surplus, each step of a rolling deploy would lose one.
//
// A Holding must not be used by several goroutines at a time.
type Holding struct {
	whole   rules.Quota
	part    rules.Quota
	updated time.Duration // time of missing and beyond; at most one of these is not 0
	// missing is the number of permits of the part that are not held.
	missing float64
	// beyond is the number of permits that are held beyond the part.
	beyond float64
}

// New returns the holding of one of n instances, which holds its whole part.
func New(q *rules.Quota, n int) *Holding {
	h := &Holding{whole: q.WithDefaults()}
	h.part, _ = limiter.Share(q, n)
	return h
}

// Part returns this instance's part of the quota.
func (h *Holding) Part() *rules.Quota { return &h.part }

// Resize sets the part to that of one of n instances that share q. It returns how many more
// permits each key owes, so that no key gets permits that are not held here; a negative result
// is forgiven. If q differs from the previous quota, the missing permits stay missing.
func (h *Holding) Resize(q *rules.Quota, n int, now time.Duration) (owed float64) {
	missing, beyond := h.state(now)
	held, whole := float64(h.part.Burst)-missing+beyond, q.WithDefaults()
	same := whole == h.whole
	h.whole = whole
	h.part, _ = limiter.Share(q, n)
	if !same || whole.Burst == rules.Unlimited {
		h.set(now, missing, 0)
		return 0
	}
	burst := float64(h.part.Burst)
	h.set(now, max(0, burst-held), max(0, held-burst))
	return h.missing - missing
}

// Trim drops the permits beyond the part. It is for an instance whose part was larger only
// because it did not know the other instances.
func (h *Holding) Trim() { h.beyond = 0 }

// Empty drops all permits, and returns how many more permits each key owes.
func (h *Holding) Empty(now time.Duration) (owed float64) {
	missing, _ := h.state(now)
	h.set(now, float64(max(0, h.part.Burst)), 0)
	return h.missing - missing
}

// Accept adds permits, up to the number that is missing, and returns how many it added.
func (h *Holding) Accept(permits float64, now time.Duration) float64 {
	missing, beyond := h.state(now)
	accepted := max(0, min(permits, missing))
	h.set(now, missing-accepted, beyond)
	return accepted
}

// Handover is the permits of a limit that an instance leaves to its replacement.
type Handover struct {
	// Left is the number of permits left for each key that is not in Of.
	Left float64 `json:"left"`
	// Of holds the permits left for the keys that spent most, by [limiter.KeyID].
	Of map[uint64]float64 `json:"of,omitempty"`
}

// Leave returns the permits that this instance leaves at now, and names at most limit keys. If more
// keys have less left than unknown keys, only those with the least are named, and all others get as
// little as the first one that is not named. As returned by [limiter.Keys.Spent], spent is the
// permits that known keys lack, and allKnown reports whether other keys lack none. If it is false,
// unknown keys get no permits. The instance must not grant these permits afterwards; see Empty.
func (h *Holding) Leave(now time.Duration, spent map[uint64]float64, allKnown bool, limit int) Handover {
	missing, beyond := h.state(now)
	held := float64(h.part.Burst) + beyond
	ids := make([]uint64, 0, len(spent))
	for id, n := range spent {
		if n > missing {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b uint64) int { return cmp.Compare(spent[b], spent[a]) })
	if len(ids) > limit {
		missing, ids = spent[ids[limit]], ids[:limit]
	}
	if !allKnown {
		missing = held
	}
	out := Handover{Left: max(0, held-missing), Of: make(map[uint64]float64)}
	for _, id := range ids {
		out.Of[id] = max(0, held-spent[id])
	}
	return out
}

// Inherit takes over the permits that another instance left age ago, less the permits that the
// fleet has earned since then, which others may hold. It returns the permits that all keys owe;
// they are negative, that is, forgiven.
func (h *Holding) Inherit(left Handover, age, now time.Duration) limiter.Owing {
	missing, _ := h.state(now)
	lost := h.Earned(age, false)
	accepted := h.Accept(left.Left-lost, now)
	owing := limiter.Owing{All: -accepted, Of: make(map[uint64]float64)}
	for id, n := range left.Of {
		if credit := max(0, min(n-lost, missing)); credit < accepted {
			owing.Of[id] = accepted - credit
		}
	}
	return owing
}

// Missing returns how many permits a key lacks that has spent none.
func (h *Holding) Missing(now time.Duration) float64 {
	missing, _ := h.state(now)
	return missing
}

// Held returns how many permits are held for a key that has spent none.
func (h *Holding) Held(now time.Duration) float64 {
	missing, beyond := h.state(now)
	return float64(h.part.Burst) - missing + beyond
}

// Earned returns how many permits are earned in d by the fleet, or by this instance if alone is
// set. For algorithms with windows, all permits return when the window has passed.
func (h *Holding) Earned(d time.Duration, alone bool) float64 {
	q := &h.whole
	if alone {
		q = &h.part
	}
	switch {
	case !q.Algorithm.Windowed():
		return float64(d) / float64(q.Rate.Interval())
	case d < q.Rate.Per:
		return 0
	}
	return float64(q.Burst)
}

// state returns the permits missing from the part, and the permits held beyond it, at now.
func (h *Holding) state(now time.Duration) (missing, beyond float64) {
	if h.missing == 0 && h.beyond == 0 {
		return 0, 0
	}
	if h.whole.Algorithm.Windowed() {
		if now >= limiter.WindowEnd(&h.whole, h.updated) {
			return 0, 0
		}
		return h.missing, h.beyond
	}
	passed := max(0, now-h.updated)
	fill := float64(h.whole.Burst) * float64(h.whole.Rate.Interval())
	return max(0, h.missing-h.Earned(passed, true)), h.beyond * max(0, 1-float64(passed)/fill)
}

// set sets the state. If the quota has windows, missing permits stay missing for the length of a
// window after the last of them was lost.
func (h *Holding) set(now time.Duration, missing, beyond float64) {
	if !h.whole.Algorithm.Windowed() || missing > h.missing || beyond > 0 {
		h.updated = now
	}
	h.missing, h.beyond = missing, beyond
}
