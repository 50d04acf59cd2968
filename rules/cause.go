package rules

// Cause is the threshold that made a key hot, in the form that is published with the key. It has
// an exception's rate if one replaces the rule's. The zero value means that the cause is not
// known, as in an entry of an earlier version. Causes can be compared with ==.
type Cause struct {
	Kind ThresholdKind
	// Rate is the count that was reached and the window in which the key's bounds count. For the
	// kinds that compare it is the least count.
	Rate Rate
	// Factor is the part of the whole for [Share], and the multiple for [Jump].
	Factor Fraction
	// Over selects the past that makes the baseline of a [Jump].
	Over Over
	// Top is the number of keys that are hot at a time, for [Top].
	Top int
	// Unit is the unit of Rate.N.
	Unit Unit
}

// Cause returns the threshold in the form that is published with a hot key.
func (t *Threshold) Cause(unit Unit) Cause {
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
	return c.terms()
}
