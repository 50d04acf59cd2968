package wire

import (
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
func RulesMark(ruleset *rules.Rules) uint32 {
	n, mark := markOf(ruleset, func(r *rules.Rule) bool { return len(r.Hot) > 0 }, nil)
	if n < 2 || n > MaxRuleSums {
		return 0
	}
	return mark
}

// markOf returns how many rules are counted among those marked, and a hash of their names and, if
// detail is not nil, of what that appends, in their order. The hash is 0 if there are none.
func markOf(ruleset *rules.Rules, marked func(*rules.Rule) bool, detail func(dst []byte, r *rules.Rule) []byte) (n int, mark uint32) {
	if detail == nil {
		detail = func(dst []byte, _ *rules.Rule) []byte { return append(dst, 0) }
	}
	sum := fnv.New32a()
	for i := range ruleset.Rules {
		if r := &ruleset.Rules[i]; marked(r) {
			n++
			_, _ = sum.Write(detail([]byte(r.CountPrefix(ruleset.Namespace)), r))
		}
	}
	if n == 0 {
		return 0, 0
	}
	return n, sum.Sum32() | 1
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
	got, text, more, ok := leadingHex(text)
	if !ok || got != uint64(mark) {
		return false
	}
	for i := range sums {
		if !more {
			return false
		}
		if sums[i], text, more, ok = leadingHex(text); !ok {
			return false
		}
	}
	return !more
}
