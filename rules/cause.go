package rules

// Cause is the threshold that made a key hot, as it is published with the key: an
// exception's rate stands in place of the rule's. The zero value means that it is not
// known, as in an entry of an earlier version. Causes can be compared with ==.
type Cause struct {
	Kind Kind
	// Rate is the count that was reached and the window in which the key's bounds
	// count; for the kinds that compare it is the least count.
	Rate Rate
	// Factor is the part of the whole for [Share], the multiple for [Jump].
	Factor Fraction
	// Over says what makes the baseline of a [Jump].
	Over Over
	// Top is how many keys are hot at a time for [Top].
	Top int
	// Unit is the unit of Rate.N.
	Unit Unit
}

// Cause returns the threshold as it is published with a key that is hot by it.
func (t *Threshold) Cause(unit Unit) Cause {
	return Cause{Kind: t.Kind, Rate: t.Rate, Factor: t.Factor, Over: t.Over, Top: t.Top, Unit: unit}
}

// IsZero reports whether the cause is not known.
func (c Cause) IsZero() bool { return c.Rate.IsZero() }

// String returns the threshold in a word or three, with counts as plain numbers of the unit:
// "200/s", "20%/1m" of the route, "8x/1m" over the baseline, "8x/1m over day" over that of the
// days before, "top 3/1m". The zero value has none.
func (c Cause) String() string {
	if c.IsZero() {
		return ""
	}
	return c.terms()
}
