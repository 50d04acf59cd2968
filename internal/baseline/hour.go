package baseline

import (
	"cmp"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/base"
)

const (
	hourSeconds = 3600
	// MinSeconds is how much of an hour must have been counted for it to be part of a
	// baseline.
	MinSeconds = hourSeconds / 4
	// MaxKeys bounds the keys of an hour, of all rules and parts of one process together.
	MaxKeys = 8192
	// minKeys is how many keys of each rule an hour has room for, however many parts there
	// are.
	minKeys = 256
)

// HourOf returns the number of the hour that holds t, counted from the Unix epoch.
func HourOf(t time.Time) int64 { return base.FloorDiv(t.Unix(), hourSeconds) }

// StartOf returns the first instant of an hour.
func StartOf(hour int64) time.Time { return time.Unix(hour*hourSeconds, 0) }

// Room returns how many keys of each rule an hour has room for, where a process has so many
// parts and a part so many rules.
func Room(parts, rules int) int { return max(minKeys, MaxKeys/max(1, parts*rules)) }

// Hour is what one part of the keys counted in one hour. It is not changed once it is in
// [Days].
type Hour struct {
	Number int64
	Rules  []RuleHour
}

// RuleHour is what the keys of one rule counted in an hour.
type RuleHour struct {
	Rule    uint64 // see [RuleHash]
	Seconds int64  // of the hour that were counted
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

// NewRuleHour returns what keys counted, each listed once. It lists those that count most if
// there are more than room, and raises the floor for the others.
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

// bounds returns what a key counted, scaled to the whole hour.
func (r *RuleHour) bounds(hash uint64) (low, high int64, listed bool) {
	at, listed := slices.BinarySearch(r.hashes, hash)
	if !listed {
		return 0, r.scale(r.Floor - 1), false
	}
	n := r.scale(r.counts[at].value())
	return n, n, true
}

// scale returns n of the seconds that were counted as of the whole hour, rounded up.
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

// rule returns what the hour has of a rule, or nil.
func (h *Hour) rule(hash uint64) *RuleHour {
	for i := range h.Rules {
		if h.Rules[i].Rule == hash {
			return &h.Rules[i]
		}
	}
	return nil
}

// seconds returns how much of the hour was counted, of the rule that was counted longest.
func (h *Hour) seconds() (most int64) {
	for i := range h.Rules {
		most = max(most, h.Rules[i].Seconds)
	}
	return most
}

// Keys returns how many keys the hour lists.
func (h *Hour) Keys() (n int) {
	for i := range h.Rules {
		n += len(h.Rules[i].hashes)
	}
	return n
}
