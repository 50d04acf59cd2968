package wire

import (
	"hash/fnv"
	"strconv"

	"github.com/hotparam/hotparam/rules"
)

// Rule sums split the counts of [Sums] by rule, so that lost counts of one rule do not bound the
// keys of another. Each rule has a sum of loose counts and a sum of counts on accounts. They are
// sent once a flush, and only between two processes with the same rules.

// MaxRuleSums is the maximum number of rules with thresholds whose sums are sent.
const MaxRuleSums = 16

// maxRuleSums is the maximum number of bytes of rule sums.
const maxRuleSums = 8 + 2*MaxRuleSums*17

// RulesMark identifies the rules whose sums are sent: the rules with thresholds, in their
// order. It is 0 if no sums are sent, because there is one rule, or too many.
func RulesMark(ruleset *rules.Rules) uint32 {
	n, mark := markOf(ruleset, func(r *rules.Rule) bool { return len(r.Hot) > 0 }, nil)
	if n < 2 || n > MaxRuleSums {
		return 0
	}
	return mark
}

// markOf returns the number of marked rules, and a hash of their names in their order. If detail
// is not nil, the hash includes the bytes that detail appends. The hash is 0 if there are none.
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

// AppendRuleSums appends a mark and the sums as hexadecimal numbers separated by dots, for
// [Meta].
func AppendRuleSums(dst []byte, mark uint32, sums []uint64) []byte {
	dst = strconv.AppendUint(dst, uint64(mark), 16)
	for _, n := range sums {
		dst = strconv.AppendUint(append(dst, '.'), n, 16)
	}
	return dst
}

// ParseRuleSums reads the text of [AppendRuleSums] with this mark and len(sums) sums into sums.
// It returns false for any other text.
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
