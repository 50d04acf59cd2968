package baseline

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
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
	i, listed := slices.BinarySearch(r.hashes, hash)
	if !listed {
		return 0, r.scale(r.Floor - 1), false
	}
	n := r.scale(r.counts[i].value())
	return n, n, true
}

// scale converts n, a count of the seconds that were counted, to the whole hour, rounded up.
func (r *RuleHour) scale(n int64) int64 {
	if r.Seconds >= hourSeconds {
		return n
	}
	whole, remainder := n/r.Seconds, n%r.Seconds
	if whole > maxQuantity/hourSeconds {
		return maxQuantity
	}
	return whole*hourSeconds + (remainder*hourSeconds+r.Seconds-1)/r.Seconds
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
func (h *Hour) seconds() (longest int64) {
	for i := range h.Rules {
		longest = max(longest, h.Rules[i].Seconds)
	}
	return longest
}

// Keys returns the number of keys that the hour lists.
func (h *Hour) Keys() (n int) {
	for i := range h.Rules {
		n += len(h.Rules[i].hashes)
	}
	return n
}

// quantity is a count in 16 bits: exact below 2,048, and above that rounded up by less than
// one part in 1,024. The upper 6 bits are an exponent e, the lower 10 a mantissa m: m for
// e = 0, and (1024 + m) << (e - 1) otherwise.
type quantity uint16

const mantissaBits = 10

// maxQuantity is a count that no key reaches in an hour.
const maxQuantity = 1 << 61

// quantize returns n, rounded up.
func quantize(n int64) quantity {
	n = min(max(0, n), maxQuantity)
	if n < 1<<mantissaBits {
		return quantity(n)
	}
	shift := bits.Len64(uint64(n)) - mantissaBits - 1
	m := (n + 1<<shift - 1) >> shift // 1024 to 2048
	if m == 2<<mantissaBits {
		m, shift = m/2, shift+1
	}
	return quantity(int64(shift+1)<<mantissaBits + m - 1<<mantissaBits)
}

// value returns the count. Encodings beyond the highest count yield the highest count.
func (q quantity) value() int64 {
	e, m := q>>mantissaBits, int64(q&(1<<mantissaBits-1))
	if e == 0 {
		return m
	}
	if e > 62-mantissaBits {
		return maxQuantity
	}
	return min(maxQuantity, (1<<mantissaBits+m)<<(e-1))
}

// RuleHash returns a hash of the properties that make counts of a rule comparable from day to
// day: its id, its unit, and the way it forms keys. It does not depend on thresholds.
func RuleHash(r *rules.Rule) uint64 {
	text := fmt.Sprintf("%s %d %d %t", r.ID, r.Count, r.By.Kind, r.ParamsOnly)
	for _, p := range r.By.Names {
		text += fmt.Sprintf(" %d:%q", p.Source, p.Name)
	}
	sum := sha256.Sum256([]byte(text))
	return binary.LittleEndian.Uint64(sum[:])
}

// Hasher hashes the texts of a rule's keys. All processes compute the same hashes, unlike
// [rules.Hash], and no one can choose a text that has the hash of another key. A Hasher must
// not be used by several goroutines at a time.
type Hasher struct{ bytes []byte }

// NewHasher returns a hasher for the rule with a hash.
func NewHasher(rule uint64) *Hasher {
	return &Hasher{binary.LittleEndian.AppendUint64(nil, rule)}
}

// Hash returns the hash of a key's text.
func (h *Hasher) Hash(text []byte) uint64 {
	h.bytes = append(h.bytes[:8], text...)
	sum := sha256.Sum256(h.bytes)
	return binary.LittleEndian.Uint64(sum[:])
}
