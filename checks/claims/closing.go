package claims

import (
	"slices"
)

// suspectDelay bounds the time from reaching the threshold to being published as a suspect.
// Detectors check keys when they are counted and once a second, and publish the result within a
// flush.
const suspectDelay = second + tenthSecond

// judgeClosedWindows judges the windows that ended at least the lag ago, after the detectors have
// closed them.
func (j *judge) judgeClosedWindows() {
	for _, r := range j.rules {
		lastClosed := r.ref.index(j.now-int64(lag)) - 1
		if r.ref.closed >= lastClosed {
			continue
		}
		floor := j.floorOfLate(r)
		for r.ref.closed < lastClosed {
			dueSuspects := make(map[int32]int64)
			for _, key := range r.ref.closeWindow() {
				if j.mustBeHot(r, key, floor) {
					since, known := r.dueSuspects[key]
					if !known {
						since = j.now
					}
					dueSuspects[key] = since
				}
			}
			r.dueSuspects = dueSuspects
		}
	}
}

// floorOfLate returns the highest of a rule's last eight floors, which reach back about as far as
// the lag.
func (j *judge) floorOfLate(r *ruling) int64 {
	copy(r.floors[1:], r.floors[:])
	r.floors[0] = j.floorOf(r.number)
	highest := slices.Max(r.floors[:])
	j.floorMost = max(j.floorMost, highest)
	return highest
}

// mustBeHot judges a key that reached the threshold in the last closed window. It reports whether
// the key has still to be published as a suspect, and there is time left to do so.
func (j *judge) mustBeHot(r *ruling, key int32, floor int64) (suspectIsDue bool) {
	r.dueHot[key] = struct{}{}
	if l := r.states[key]; l != nil && l.hot {
		return false
	}
	_, _, placed := r.ref.bounds(key, r.ref.closed)
	arrived := placed - r.ref.unknownPart(key, r.ref.closed).absent
	if arrived < r.N || j.isCrowded() {
		return false
	}
	floor += j.hiddenInMissing(j.now - int64(r.D+lag+2*grace))
	if arrived >= r.N+floor {
		j.recordViolation(Missed, r, key, "%d arrived in the window that ends at %s, the floor is %d", arrived, timeOfDay(r.ref.paneEnd(r.ref.closed)), floor)
		return false
	}
	_, suspect := j.listed[listedKey{r.number, key}]
	switch {
	case suspect:
		return false
	case floor >= r.N: // nothing may have arrived of a key that can be hidden entirely
		return false
	case r.ref.countReaching(r.N-floor) > j.suspectsPublished:
		return false
	}
	if since, known := r.dueSuspects[key]; known && j.now-since > suspectDelay {
		j.recordViolation(Untold, r, key, "%d arrived in the window that ends at %s, and as many as the threshold since %s; the floor is %d", arrived, timeOfDay(r.ref.paneEnd(r.ref.closed)), timeOfDay(since), floor)
		return false
	}
	return true
}

// checkAllCool judges the state after a long time without counts: no key may still be hot.
func (j *judge) checkAllCool() {
	for _, r := range j.rules {
		for key, l := range r.states {
			if l.hot {
				j.recordViolation(Stuck, r, key, "hot since %s", timeOfDay(l.since))
			}
		}
	}
}
