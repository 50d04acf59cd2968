package wire

import (
	"bytes"
	"strconv"

	"github.com/hotparam/hotparam/rules"
)

// heldMarker separates the prefix from the group of a held-back line.
const heldMarker = ".hot_held."

// HeldBack states that N counts of a group's keys were made in this flush and are held back. A
// receiver that adds up the group counts them now, and not when the keys' lines arrive, whose
// start is before their flush. A share is compared with such a sum, so a flood hides no part of
// it. The bytes of a parsed HeldBack are views into the line.
type HeldBack struct {
	Prefix []byte
	Group  []byte // encoded; in the form of [base.AppendGroup] or [base.AppendAgain]
	N      int64
}

// Rest is the group for all groups without their own line. No key's text has this form.
const Rest = "~rest"

// MaxGroups is the maximum number of groups of a rule that a sender reports in one flush, not
// counting [Rest].
const MaxGroups = 64

// AppendHeldBack appends a held-back line without a newline, the group encoded by e:
//
//	shop.search.hot_held.GET%20/search?page&q:600|c
//
// Its name has another marker than a count's, so no reader mistakes it for one.
func AppendHeldBack(dst []byte, e Encoding, prefix string, group []byte, n int64) []byte {
	dst = append(append(dst, prefix...), heldMarker...)
	return AppendCount(e.Append(dst, group), n, Account{})
}

// IsHeldBack reports whether a line looks like a held-back line.
func IsHeldBack(line []byte) bool { return bytes.Contains(line, []byte(heldMarker)) }

// ParseHeldBack reads a held-back line.
func ParseHeldBack(line []byte) (HeldBack, error) {
	prefix, tail, found := bytes.Cut(line, []byte(heldMarker))
	if !found {
		return HeldBack{}, ErrForeign
	}
	group, tail, _ := bytes.Cut(tail, []byte{':'})
	value, isCounter := bytes.CutSuffix(tail, []byte("|c"))
	n, ok := digits(value)
	if !isCounter || !ok || n > MaxCount || len(prefix) == 0 || len(group) == 0 {
		return HeldBack{}, ErrMalformed
	}
	return HeldBack{Prefix: prefix, Group: group, N: n}, nil
}

// GroupsMark identifies the rules for which senders report the held-back counts of groups: the
// rules with a share. It is 0 if there are none. A receiver with other rules ignores the
// reports.
func GroupsMark(ruleset *rules.Rules) uint32 {
	_, mark := markOf(ruleset, (*rules.Rule).HasShare, func(dst []byte, r *rules.Rule) []byte { return strconv.AppendBool(dst, r.ParamsOnly) })
	return mark
}
