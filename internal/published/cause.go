package published

import (
	"strconv"
	"strings"

	"github.com/hotparam/hotparam/rules"
)

// Cause is the threshold that made a key hot, in the form that is published with the key. It has
// an exception's rate if one replaces the rule's. The zero value means that the cause is not
// known, as in an entry of an earlier version. Causes can be compared with ==.
type Cause struct {
	Kind rules.ThresholdKind
	// Rate is the count that was reached and the window in which the key's bounds count. For the
	// kinds that compare it is the least count.
	Rate rules.Rate
	// Factor is the part of the whole for [rules.Share], and the multiple for [rules.Jump].
	Factor rules.Fraction
	// Over selects the past that makes the baseline of a [rules.Jump].
	Over rules.Over
	// Top is the number of keys that are hot at a time, for [rules.Top].
	Top int
	// Unit is the unit of Rate.N.
	Unit rules.Unit
}

// CauseOf returns a threshold in the form that is published with a hot key.
func CauseOf(t *rules.Threshold, unit rules.Unit) Cause {
	return Cause{Kind: t.Kind, Rate: t.Rate, Factor: t.Factor, Over: t.Over, Top: t.Top, Unit: unit}
}

// IsZero reports whether the cause is not known.
func (c Cause) IsZero() bool { return c.Rate.IsZero() }

// String returns the threshold in a few words, with counts as plain numbers of the unit. Examples
// are "200/s", "20%/1m" of the route, "8x/1m" over the baseline, "8x/1m over day" over that of
// the days before, and "top 3/1m". The zero value returns "".
func (c Cause) String() string {
	if c.IsZero() {
		return ""
	}
	rate := c.Rate.String()
	_, per, _ := strings.Cut(rate, "/")
	switch c.Kind {
	case rules.Share:
		return c.Factor.Decimal(100) + "%/" + per
	case rules.Jump:
		if c.Over != rules.OverRecent {
			per += " over " + c.Over.String()
		}
		return c.Factor.Decimal(1) + "x/" + per
	case rules.Top:
		return "top " + strconv.Itoa(c.Top) + "/" + per
	case rules.Cost:
		return c.Kind.String()
	}
	return rate
}

// parseCause reads a cause from the names of its kind and unit and the text that [Cause.String]
// writes. For a kind that compares, rate is the least count. ok is false for anything unknown,
// such as a kind of a later version.
func parseCause(kind, unit, text string, rate rules.Rate) (c Cause, ok bool) {
	k, known := parseName(kind, rules.Cost)
	u, ok := parseName(unit, rules.Units)
	if !known || !ok {
		return Cause{}, false
	}
	c = Cause{Kind: k, Unit: u, Rate: rate}
	terms, per, _ := strings.Cut(text, "/")
	var err error
	switch c.Kind {
	case rules.Share:
		c.Factor, err = rules.ParseFraction(strings.TrimSuffix(terms, "%"), 100)
	case rules.Jump:
		c.Factor, err = rules.ParseFraction(strings.TrimSuffix(terms, "x"), 1)
		if _, past, found := strings.Cut(per, " over "); found {
			if c.Over, ok = rules.ParseOver(past); !ok {
				return Cause{}, false
			}
		}
	case rules.Cost:
	case rules.Top:
		if c.Top, err = strconv.Atoi(strings.TrimPrefix(terms, "top ")); c.Top < 0 || c.Top > rules.MaxTop {
			return Cause{}, false
		}
	}
	return c, err == nil
}

// parseName returns the value up to last whose String method returns name.
func parseName[T interface {
	~uint8
	String() string
}](name string, last T) (T, bool) {
	for v := T(0); v <= last; v++ {
		if v.String() == name {
			return v, true
		}
	}
	return 0, false
}
