package baseline

import (
	"cmp"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/base"
)

const (
	hourSeconds = 3600
	// MinSeconds is the part of an hour that must have been counted for it to be part of a
	// baseline.
	MinSeconds = hourSeconds / 4
	// MaxKeys bounds the keys of an hour, of all rules and parts of one process together.
	MaxKeys = 8192
	// minKeys is the number of keys of each rule for which an hour has room, however many parts
	// there are.
	minKeys = 256
)

// HourOf returns the number of the hour that holds t, counted from the Unix epoch.
func HourOf(t time.Time) int64 { return base.FloorDiv(t.Unix(), hourSeconds) }

// StartOf returns the first instant of an hour.
func StartOf(hour int64) time.Time { return time.Unix(hour*hourSeconds, 0) }

// Room returns the number of keys of each rule for which an hour has room. parts is the number
// of parts of the process, and rules the number of rules of a part.
func Room(parts, rules int) int { return max(minKeys, MaxKeys/max(1, parts*rules)) }

// Hour holds the counts of one part of the keys in one hour. It is not changed once it is in
// [Days].
type Hour struct {
	Number int64
	Rules  []RuleHour
}

// RuleHour holds the counts of the keys of one rule in an hour.
type RuleHour struct {
	Rule    uint64 // see [RuleHash]
	Seconds int64  // number of seconds of the hour that were counted
	// Floor is above the count of each key that is not listed.
	Floor  int64
	hashes []uint64 // ascending
	counts []quantity
}

// KeyCount is the count of one key.
type KeyCount struct {
	Hash uint64 // see [Hasher]
	N    int64
}

// NewRuleHour returns the counts of keys, each listed once. If there are more than room, it
// lists the keys with the highest counts, and raises the floor for the others.
func NewRuleHour(rule uint64, seconds, floor int64, keys []KeyCount, room int) RuleHour {
	r := RuleHour{Rule: rule, Seconds: seconds, Floor: max(1, floor)}
	if len(keys) > room {
		slices.SortFunc(keys, func(a, b KeyCount) int {
			return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Hash, b.Hash))
		})
		r.Floor = max(r.Floor, keys[room].N+1)
		keys = keys[:room]
	}
	slices.SortFunc(keys, func(a, b KeyCount) int { return cmp.Compare(a.Hash, b.Hash) })
	for _, k := range keys {
		r.hashes = append(r.hashes, k.Hash)
		r.counts = append(r.counts, quantize(k.N))
	}
	return r
}

// bounds returns the bounds of a key's count, scaled to the whole hour.
func (r *RuleHour) bounds(hash uint64) (low, high int64, listed bool) {
	at, listed := slices.BinarySearch(r.hashes, hash)
	if !listed {
		return 0, r.scale(r.Floor - 1), false
	}
	n := r.scale(r.counts[at].value())
	return n, n, true
}

// scale converts n, a count of the seconds that were counted, to the whole hour, rounded up.
func (r *RuleHour) scale(n int64) int64 {
	if r.Seconds >= hourSeconds {
		return n
	}
	whole, rest := n/r.Seconds, n%r.Seconds
	if whole > maxQuantity/hourSeconds {
		return maxQuantity
	}
	return whole*hourSeconds + (rest*hourSeconds+r.Seconds-1)/r.Seconds
}

// rule returns the counts of a rule in the hour, or nil.
func (h *Hour) rule(hash uint64) *RuleHour {
	for i := range h.Rules {
		if h.Rules[i].Rule == hash {
			return &h.Rules[i]
		}
	}
	return nil
}

// seconds returns the counted seconds of the rule that was counted longest.
func (h *Hour) seconds() (most int64) {
	for i := range h.Rules {
		most = max(most, h.Rules[i].Seconds)
	}
	return most
}

// Keys returns the number of keys that the hour lists.
func (h *Hour) Keys() (n int) {
	for i := range h.Rules {
		n += len(h.Rules[i].hashes)
	}
	return n
}
