package baseline

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/hotparam/hotparam/rules"
)

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
