package claims

import (
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
)

// Count implements [decode.Handler]. It spreads counts over the detectors as the daemon does.
func (r *run) Count(c decode.Count) {
	r.counted += c.N
	key, ok := r.stream.ID(c.Text)
	if !ok {
		// The key was changed in transit, and its count is missing for the original key.
		r.judge.recordViolation(Uncounted, nil, 0, "%q is no key of the stream", c.Text)
		return
	}
	r.keys[c.Hash] = key
	c.Hash = r.hash(key, anyRule)
	r.parts[r.part(key)].Count(c)
}

// anyRule is passed to hash by callers for which a key has one hash in all rules, as in an
// aggregator.
const anyRule = 255

func (r *run) part(key int32) int { return int(r.hash(key, anyRule)>>56) % r.Parts }

// hash replaces rules.Hash, which differs from process to process. Only collectors that are
// steered need the hashes of rules.Hash. No hash is 0, which means that there is none.
func (r *run) hash(key int32, rule int) uint64 {
	return base.Mix64(r.Seed*0x9e3779b97f4a7c15+uint64(key)<<8+uint64(rule)) | 1
}

// AddHiddenCounts implements [decode.Handler].
func (r *run) AddHiddenCounts(when time.Time, n int64) {
	for _, d := range r.parts {
		d.AddHiddenCounts(when, n)
	}
}

// SetHeldBackBound implements [decode.Handler].
func (r *run) SetHeldBackBound(rule int, bound, outsideGroups int64) {
	for _, d := range r.parts {
		d.SetHeldBackBound(rule, bound, outsideGroups)
	}
}

// AddHeldBack implements [decode.Handler].
func (r *run) AddHeldBack(decode.HeldBack) {} // for rules with a share

// RecordLoss implements [decode.Handler].
func (r *run) RecordLoss(when time.Time) {
	for _, d := range r.parts {
		d.RecordLoss(when)
	}
}

// ReduceLoss implements [decode.Handler].
func (r *run) ReduceLoss(newest time.Time) {
	for _, d := range r.parts {
		d.ReduceLoss(newest)
	}
}

// RecordGap implements [decode.Handler].
func (r *run) RecordGap(g decode.Gap) {
	for _, d := range r.parts {
		d.RecordGap(g)
	}
}

// ExcludeFromGap implements [decode.Handler].
func (r *run) ExcludeFromGap(gap uint64, rule int, hash uint64, known bool) {
	if key, ok := r.keys[hash]; ok { // otherwise nothing of it was counted
		r.parts[r.part(key)].ExcludeFromGap(gap, rule, r.hash(key, anyRule), known)
	}
}

// AddHealedCount implements [decode.Handler].
func (r *run) AddHealedCount(c decode.Count, until time.Time) {
	if key, ok := r.stream.ID(c.Text); ok {
		c.Hash = r.hash(key, anyRule)
		r.parts[r.part(key)].AddHealedCount(c, until)
	}
}

// MoveHealedCount implements [decode.Handler].
func (r *run) MoveHealedCount(c decode.Count, from, to time.Time) {
	if key, ok := r.stream.ID(c.Text); ok {
		c.Hash = r.hash(key, anyRule)
		r.parts[r.part(key)].MoveHealedCount(c, from, to)
	}
}
