package baseline

import "slices"

// Reference bounds the count of a key in an hour such as the current one.
type Reference struct {
	// Low and High bound the count of a whole hour. They differ for a key that was not
	// listed.
	Low, High int64
	// Days is the number of days in the baseline.
	Days int
}

// Version changes whenever a reference may have changed.
type Version struct{ hours *hourTable }

// Version returns the current version.
func (d *Days) Version() Version { return Version{d.hours.Load()} }

// Reference returns the count of a key of a rule at the same hour of earlier days, and false if
// no such hour is known.
//
// Each day counts by the highest of that hour and its two neighbours. So a full hour makes no
// jump, and a daily peak may come an hour earlier or later, as when clocks change. The result
// is the median of the days, the lower one of an even number: an attack on one day or on
// several leaves the baseline unchanged. The highest day would hide attacks for a week after
// one.
func (d *Days) Reference(hour int64, rule, key uint64) (Reference, bool) {
	t := *d.hours.Load()
	var lows, highs [History]int64
	n := 0
	for day := int64(1); day <= History; day++ {
		same := hour - day*dayHours
		low, high, ok := t.bounds(same, rule, key)
		if !ok {
			continue
		}
		for _, next := range [...]int64{same - 1, same + 1} {
			if l, h, ok := t.bounds(next, rule, key); ok {
				low, high = max(low, l), max(high, h)
			}
		}
		lows[n], highs[n] = low, high
		n++
	}
	if n == 0 {
		return Reference{}, false
	}
	return Reference{median(lows[:n]), median(highs[:n]), n}, true
}

// median sorts the numbers and returns their median, the lower one of an even number.
func median(numbers []int64) int64 {
	slices.Sort(numbers)
	return numbers[(len(numbers)-1)/2]
}

// bounds returns the bounds of a key's count in an hour, and reports whether enough of the hour
// was counted. A key is counted by one part at a time, so a key that no part lists counted at
// most the amount that one of them can hide.
func (t hourTable) bounds(hour int64, rule, key uint64) (low, high int64, ok bool) {
	unlisted := int64(0)
	for _, h := range t[hour] {
		r := h.rule(rule)
		if r == nil || r.Seconds < MinSeconds {
			continue
		}
		ok = true
		l, upper, listed := r.bounds(key)
		if listed {
			low, high = min(maxQuantity, low+l), min(maxQuantity, high+upper)
		} else {
			unlisted = max(unlisted, upper)
		}
	}
	return low, max(high, unlisted), ok
}
