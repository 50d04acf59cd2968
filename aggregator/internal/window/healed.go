package window

import (
	"slices"
	"time"
)

// Heal records n counts of a key that were missing, are counted at since and may be of up
// to until. It returns false if there is no room: then they must not be counted, and are
// missing of any key.
func (m *Missing) Heal(key MissingKey, since, until time.Time, n int64) bool {
	m.changes++
	if m.of(key, until.UnixNano()) == nil {
		m.lose(since, until, n)
		return false
	}
	m.note(key, healedCount{since.UnixNano(), until.UnixNano(), n, true})
	return true
}

// note notes counts of a key that is known.
func (m *Missing) note(key MissingKey, x healedCount) {
	k := m.keys[key]
	m.changes++
	for i := range k.healed {
		if h := &k.healed[i]; h.from == x.from && h.to == x.to && h.placed == x.placed {
			h.n += x.n
			return
		}
	}
	if len(k.healed) == maxHealed {
		k.join()
	}
	k.healed = append(k.healed, x)
}

// join makes one of the two oldest counts that are both placed, or not.
func (k *missingOf) join() {
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

// Lack records n counts of a key that are missing and are not counted.
func (m *Missing) Lack(key MissingKey, since, until time.Time, n int64) {
	if m.of(key, until.UnixNano()) == nil {
		m.lose(since, until, n)
		return
	}
	m.note(key, healedCount{since.UnixNano(), until.UnixNano(), n, false})
}

// Unheal records that n of the counts between two times have come after all; placed says
// whether they were counted. It returns false if not so many are known.
func (m *Missing) Unheal(key MissingKey, from, to time.Time, n int64, placed bool) bool {
	k := m.keys[key]
	if k == nil {
		return false
	}
	for i := range k.healed {
		if h := &k.healed[i]; h.from == from.UnixNano() && h.to == to.UnixNano() && h.n >= n && h.placed == placed {
			if h.n -= n; h.n == 0 {
				k.healed = slices.Delete(k.healed, i, i+1)
			}
			m.changes++
			return true
		}
	}
	return false
}
