package claims

import (
	"slices"
)

// told bounds the time from reaching the threshold to being published as a suspect. Detectors
// check keys when they are counted and once a second, and publish the result within a flush.
const told = second + tenth

// close judges the windows that ended at least the lag ago, after the detectors have closed them.
func (j *judge) close() {
	for _, r := range j.rules {
		over := r.ref.index(j.now-int64(lag)) - 1
		if r.ref.closed >= over {
			continue
		}
		floor := j.floorOfLate(r)
		for r.ref.closed < over {
			owed := make(map[int32]int64)
			for _, key := range r.ref.close() {
				if j.mustBeHot(r, key, floor) {
					since, known := r.owed[key]
					if !known {
						since = j.now
					}
					owed[key] = since
				}
			}
			r.owed = owed
		}
	}
}

// floorOfLate returns the highest of a rule's last eight floors, which reach back about as far as
// the lag.
func (j *judge) floorOfLate(r *ruling) int64 {
	copy(r.floors[1:], r.floors[:])
	r.floors[0] = j.floor(r.number)
	most := slices.Max(r.floors[:])
	j.floorMost = max(j.floorMost, most)
	return most
}

// mustBeHot judges a key that reached the threshold in the last closed window. It reports whether
// the key has still to be published as a suspect, and there is time left to do so.
func (j *judge) mustBeHot(r *ruling, key int32, floor int64) (owed bool) {
	r.must[key] = struct{}{}
	if l := r.lives[key]; l != nil && l.hot {
		return false
	}
	_, _, placed := r.ref.bounds(key, r.ref.closed)
	arrived := placed - r.ref.gap(key, r.ref.closed).absent
	if arrived < r.N || j.crowded() {
		return false
	}
	floor += j.unheard(j.now - int64(r.D+lag+2*grace))
	if arrived >= r.N+floor {
		j.wrong(Missed, r, key, "%d arrived in the window that ends at %s, the floor is %d", arrived, at(r.ref.end(r.ref.closed)), floor)
		return false
	}
	_, suspect := j.listed[listing{r.number, key}]
	switch {
	case suspect:
		return false
	case floor >= r.N: // nothing may have arrived of a key that can be hidden entirely
		return false
	case r.ref.reach(r.N-floor) > j.suspectsTold:
		return false
	}
	if since, known := r.owed[key]; known && j.now-since > told {
		j.wrong(Untold, r, key, "%d arrived in the window that ends at %s, and as many as the threshold since %s; the floor is %d", arrived, at(r.ref.end(r.ref.closed)), at(since), floor)
		return false
	}
	return true
}

// silence judges the state after a long time without counts: no key may still be hot.
func (j *judge) silence() {
	for _, r := range j.rules {
		for key, l := range r.lives {
			if l.hot {
				j.wrong(Stuck, r, key, "hot since %s", at(l.since))
			}
		}
	}
}
