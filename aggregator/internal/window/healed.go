package window

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/decode"
)

// Heal records n counts of a key that were missing. They are counted at since and may belong to
// any time up to until. Heal returns false if there is no room. Then they must not be counted,
// and count as missing of any key.
func (m *Missing) Heal(key MissingKey, since, until time.Time, n int64) bool {
	return m.addHealed(key, healedCount{since.UnixNano(), until.UnixNano(), n, true})
}

// RecordLack records n counts of a key that are missing and are not counted.
func (m *Missing) RecordLack(key MissingKey, since, until time.Time, n int64) {
	m.addHealed(key, healedCount{since.UnixNano(), until.UnixNano(), n, false})
}

// addHealed adds counts of a key. Without room for the key it returns false, and they are counts
// of any key.
func (m *Missing) addHealed(key MissingKey, x healedCount) bool {
	m.changes++
	k := m.stateOf(key, x.to)
	if k == nil {
		m.lastOwnID--
		m.Add(decode.Gap{ID: m.lastOwnID, From: time.Unix(0, x.from), To: time.Unix(0, x.to), Loose: x.n})
		return false
	}
	for i := range k.healed {
		if h := &k.healed[i]; h.from == x.from && h.to == x.to && h.placed == x.placed {
			h.n += x.n
			return true
		}
	}
	if len(k.healed) == maxHealed {
		k.joinOldest()
	}
	k.healed = append(k.healed, x)
	return true
}

// joinOldest merges the oldest count with the next one that is placed like it, or unplaced like
// it.
func (k *missingOf) joinOldest() {
	for i := range k.healed[:2] {
		a := k.healed[i]
		for j := i + 1; j < len(k.healed); j++ {
			if b := &k.healed[j]; a.placed == b.placed {
				b.from, b.to, b.n = min(a.from, b.from), max(a.to, b.to), a.n+b.n
				k.healed = slices.Delete(k.healed, i, i+1)
				return
			}
		}
	}
}

// CountHealed returns the number of a key's counts that were recorded for the time between from
// and to. placed selects the counts recorded by Heal; otherwise those recorded by RecordLack
// are returned.
func (m *Missing) CountHealed(key MissingKey, from, to time.Time, placed bool) int64 {
	if h := m.healed(key, from, to, placed); h != nil {
		return h.n
	}
	return 0
}

// Unheal records that n of the counts that CountHealed returns have arrived after all.
func (m *Missing) Unheal(key MissingKey, from, to time.Time, n int64, placed bool) {
	h := m.healed(key, from, to, placed)
	if h == nil || n == 0 {
		return
	}
	if h.n -= n; h.n <= 0 {
		k := m.keys[key]
		k.healed = slices.DeleteFunc(k.healed, func(h healedCount) bool { return h.n <= 0 })
	}
	m.changes++
}

func (m *Missing) healed(key MissingKey, from, to time.Time, placed bool) *healedCount {
	k := m.keys[key]
	if k == nil {
		return nil
	}
	i := slices.IndexFunc(k.healed, func(h healedCount) bool {
		return h.from == from.UnixNano() && h.to == to.UnixNano() && h.placed == placed
	})
	if i < 0 {
		return nil
	}
	return &k.healed[i]
}
