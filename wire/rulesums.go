package wire

import (
	"bytes"
	"hash/fnv"
	"strconv"

	"github.com/hotparam/hotparam/rules"
)

// Rule sums split the counts of [Sums] by rule, so that counts lost of one rule are no bound
// for keys of another. Each rule has a sum of loose counts and one of counts on accounts.
// They are sent once a flush, and only between two processes with the same rules.

// MaxRuleSums is the most rules with thresholds whose sums are sent.
const MaxRuleSums = 16

// maxRuleSums is the most bytes that they take.
const maxRuleSums = 8 + 2*MaxRuleSums*17

// RulesMark identifies the rules whose sums are sent: those with thresholds, in their
// order. It is 0 where no sums are sent, because there is one rule, or too many.
func RulesMark(rules *rules.Rules) uint32 {
	sum, n := fnv.New32a(), 0
	for i := range rules.Rules {
		if r := &rules.Rules[i]; len(r.Hot) > 0 {
			n++
			_, _ = sum.Write(append([]byte(r.CountPrefix(rules.Namespace)), 0))
		}
	}
	if n < 2 || n > MaxRuleSums {
		return 0
	}
	return sum.Sum32() | 1
}

// AppendRuleSums appends a mark and the sums as hexadecimal numbers, dots between them, as
// [Meta] has them.
func AppendRuleSums(dst []byte, mark uint32, sums []uint64) []byte {
	dst = strconv.AppendUint(dst, uint64(mark), 16)
	for _, n := range sums {
		dst = strconv.AppendUint(append(dst, '.'), n, 16)
	}
	return dst
}

// ParseRuleSums reads what [AppendRuleSums] wrote with this mark and so many sums, into
// sums. It is false for any other.
func ParseRuleSums(sums []uint64, text []byte, mark uint32) bool {
	part, text, more := bytes.Cut(text, []byte{'.'})
	if got, ok := parseUint(part, 16, true); !ok || got != uint64(mark) {
		return false
	}
	for i := range sums {
		if !more {
			return false
		}
		part, text, more = bytes.Cut(text, []byte{'.'})
		var ok bool
		if sums[i], ok = parseUint(part, 16, true); !ok {
			return false
		}
	}
	return !more
}
