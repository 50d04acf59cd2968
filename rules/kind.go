package rules

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// ThresholdKind selects the count that a threshold compares a key's count with.
type ThresholdKind uint8

// Kinds of threshold. The low bound of the key's count is compared with the high bound of the
// reference, so a key that is called hot is certain to be hot.
const (
	FixedRate ThresholdKind = iota // with Rate.N alone
	// Share compares with Factor × the counts of all keys of the rule on the same route that have
	// the same parameter names.
	Share
	// Jump compares with Factor × the key's own baseline: its mean count per window, see [Over].
	Jump
	// Top compares with the counts of the other keys of the rule: the Top highest are hot.
	Top
	// Cost finds the keys that take the time of a back end, by trial: while other keys' requests
	// are slower than they were, a key is held to few requests at a time, and stays hot only if
	// that makes the others faster. Rate.N is 1.
	Cost
)

var kindNames = [...]string{"rate", "share", "jump", "top", "cost"}

// String returns the kind as the rules file names its field.
func (k ThresholdKind) String() string { return nameOf(kindNames[:], k) }

// CostRate is the Rate of a threshold of kind [Cost]: any time at all, within a second.
var CostRate = Rate{N: 1, Per: time.Second}

// Over selects the past that makes a key's baseline.
type Over uint8

// Pasts that make a baseline.
const (
	OverRecent Over = iota // the ten windows before the present one
	// OverDay is the same hour, UTC, and its neighbours, of up to seven days before. Until an
	// hour of an earlier day is known, the ten windows before are the baseline.
	OverDay
)

var overNames = [...]string{"", "day"}

// String returns the past as the rules file names it, "" for the recent one.
func (o Over) String() string { return nameOf(overNames[:], o) }

// ParseOver reads the past that a rules file names: "day".
func ParseOver(s string) (Over, bool) {
	i := slices.Index(overNames[1:], s)
	return Over(i + 1), i >= 0
}

const (
	shareHint = "20% is a fifth of the route's count, 20%/1m the same within a minute"
	jumpHint  = "8x is eight times what the key had before, 8x/1m the same within a minute"
	overHint  = "over: day compares a key with its own same hour of the days before"
)

// validateKind reports errors of the fields that only some kinds have: factor, past and number of
// keys.
func (t *Threshold) validateKind(bad *FieldErrors) {
	factor := fmt.Sprintf("%d/%d", t.Factor.Num, t.Factor.Den)
	switch {
	case t.Kind != Share && t.Kind != Jump && t.Factor != Fraction{}:
		bad.add("share", factor, "leave it zero", "a factor is for a share or a jump")
	case t.Kind == Share && (t.Factor.Num < 1 || t.Factor.Den < t.Factor.Num):
		bad.add("share", factor, shareHint, "a share must be above 0%% and at most 100%%")
	case t.Kind == Jump && (t.Factor.Den < 1 || t.Factor.Cmp(1) <= 0 || t.Factor.Cmp(maxFactor) > 0):
		bad.add("jump", factor, jumpHint, "a jump must be above 1x and at most %dx", int64(maxFactor))
	}
	switch {
	case t.Kind != Jump && t.Over != OverRecent:
		bad.add("over", "", "remove it: only a jump compares a key with its past", "the threshold is no jump")
	case int(t.Over) >= len(overNames):
		bad.add("over", "", overHint, "over %d is none", t.Over)
	}
	switch {
	case t.Kind != Top && t.Top != 0:
		bad.add("top", quoted(fmt.Sprint(t.Top)), "leave it zero", "a number of keys is for top")
	case t.Kind == Cost && t.Rate != CostRate:
		bad.add("cost", quoted(t.Rate.String()), "cost: auto needs no number", "a cost has no count and no window of its own")
	case t.Kind == Top && (t.Top < 1 || t.Top > MaxTop):
		bad.add("top", quoted(fmt.Sprint(t.Top)), "top: 10 makes the ten keys with the highest counts hot", "want a whole number of 1 to %d", MaxTop)
	}
}

// Compared describes the count that a key is compared with: "20% of the route", "8x the
// baseline", "a place among the top 3". It is "" for a rate and for a cost.
func (t *Threshold) Compared() string {
	switch t.Kind {
	case Share:
		return t.Factor.Decimal(100) + "% of the route"
	case Jump:
		baseline := "x the baseline"
		if t.Over == OverDay {
			baseline += " of the same hour of the days before (the recent past until one is known)"
		}
		return t.Factor.Decimal(1) + baseline
	case Top:
		return "a place among the top " + strconv.Itoa(t.Top)
	}
	return ""
}
