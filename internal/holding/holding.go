// Package holding keeps account of what one instance holds of a quota that a fleet shares.
package holding

import (
	"cmp"
	"slices"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// Holding is what one instance of a fleet holds of the burst of a quota that the fleet shares.
// Parts change with the number of instances. Permits do not come with a part: they pass from
// one instance to another, or are earned at the fleet's rate. So all holdings together are at
// most the burst, whoever joins, leaves or crashes, and however late the others learn of it.
//
// A part that grows takes over what a lost instance may have spent, so the new permits of it
// are missing at first. A part that shrinks keeps what it held beyond for as long as the
// joiner takes to earn as much: if the part grows again meanwhile, that comes back.
//
// The alternatives were rejected: if parts that grow are full, each crash grants a share; if
// parts that shrink forget the rest, each step of a rolling deploy loses a share.
//
// A Holding is for one goroutine at a time.
type Holding struct {
	whole rules.Quota
	part  rules.Quota
	at    time.Duration // of the following, of which at most one is not 0
	// missing is how many permits of the part are not held.
	missing float64
	// beyond is how many permits are held beyond the part.
	beyond float64
}

// New returns the holding of one of n instances that has its whole part.
func New(q *rules.Quota, n int) *Holding {
	h := &Holding{whole: q.WithDefaults()}
	h.part, _ = limiter.Share(q, n)
	return h
}

// Part returns this instance's part of the quota.
func (h *Holding) Part() *rules.Quota { return &h.part }

// Resize divides q by n from now on. It returns how many permits more each key owes, so that
// none gets what this instance does not hold; below zero they are forgiven. Another quota
// keeps what is missing.
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

// Trim gives up what is held beyond the part, which is for an instance that had a larger part
// only because it did not know the others.
func (h *Holding) Trim() { h.beyond = 0 }

// Empty gives up all that is held, and returns how many permits more each key owes.
func (h *Holding) Empty(now time.Duration) (owed float64) {
	missing, _ := h.state(now)
	h.set(now, float64(max(0, h.part.Burst)), 0)
	return h.missing - missing
}

// Accept adds permits as far as they are missing, and returns how many it added.
func (h *Holding) Accept(permits float64, now time.Duration) float64 {
	missing, beyond := h.state(now)
	accepted := max(0, min(permits, missing))
	h.set(now, missing-accepted, beyond)
	return accepted
}

// Handover is what an instance leaves of a limit to the one that takes its place.
type Handover struct {
	// Left is how many permits are left for a key that is not in Of.
	Left float64 `json:"left"`
	// Of holds what is left for the keys of which most was taken, by [KeyID].
	Of map[uint64]float64 `json:"of,omitempty"`
}

// Leave returns what this instance leaves at now, with at most so many keys: if more have
// less left than unknown keys, all others get as little as the next one. Spent is what known
// keys lack, and all reports whether no other lacks anything, as [Keys] return both; if not,
// nothing is left for unknown keys. The instance must not grant permits of it afterwards: see
// Empty.
func (h *Holding) Leave(now time.Duration, spent map[uint64]float64, all bool, most int) Handover {
	missing, beyond := h.state(now)
	held := float64(h.part.Burst) + beyond
	ids := make([]uint64, 0, len(spent))
	for id, n := range spent {
		if n > missing {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b uint64) int { return cmp.Compare(spent[b], spent[a]) })
	if len(ids) > most {
		missing, ids = spent[ids[most]], ids[:most]
	}
	if !all {
		missing = held
	}
	out := Handover{Left: max(0, held-missing), Of: make(map[uint64]float64)}
	for _, id := range ids {
		out.Of[id] = max(0, held-spent[id])
	}
	return out
}

// Inherit takes over what another instance left some time ago, without what the others may
// have earned of it since then. It returns what all keys owe, which is below zero.
func (h *Holding) Inherit(left Handover, age, now time.Duration) limiter.Owing {
	missing, _ := h.state(now)
	lost := h.Earned(age, false)
	accepted := h.Accept(left.Left-lost, now)
	by := limiter.Owing{All: -accepted, Of: make(map[uint64]float64)}
	for id, n := range left.Of {
		if own := max(0, min(n-lost, missing)); own < accepted {
			by.Of[id] = accepted - own
		}
	}
	return by
}

// Missing returns how many permits a key lacks of which nothing was taken.
func (h *Holding) Missing(now time.Duration) float64 {
	missing, _ := h.state(now)
	return missing
}

// Held returns how many permits are held for a key of which nothing was taken.
func (h *Holding) Held(now time.Duration) float64 {
	missing, beyond := h.state(now)
	return float64(h.part.Burst) - missing + beyond
}

// Earned returns how many permits the fleet earns in d, or with alone this instance. What
// was taken of a window is back when the window has passed.
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

// state returns what is missing and what is held beyond the part at now.
func (h *Holding) state(now time.Duration) (missing, beyond float64) {
	if h.missing == 0 && h.beyond == 0 {
		return 0, 0
	}
	if h.whole.Algorithm.Windowed() {
		if now >= limiter.WindowEnd(&h.whole, h.at) {
			return 0, 0
		}
		return h.missing, h.beyond
	}
	passed := max(0, now-h.at)
	fill := float64(h.whole.Burst) * float64(h.whole.Rate.Interval())
	return max(0, h.missing-h.Earned(passed, true)), h.beyond * max(0, 1-float64(passed)/fill)
}

// set sets the state. Permits of a window that are missing stay missing for a window's length
// after the last of them was lost.
func (h *Holding) set(now time.Duration, missing, beyond float64) {
	if !h.whole.Algorithm.Windowed() || missing > h.missing || beyond > 0 {
		h.at = now
	}
	h.missing, h.beyond = missing, beyond
}
