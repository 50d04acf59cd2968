package history

import "github.com/hotparam/hotparam/rules"

// plus adds bounds. Either may be [rules.Unknown].
func plus(a, b int64) int64 {
	if a == rules.Unknown || b == rules.Unknown {
		return rules.Unknown
	}
	return a + b
}

// plusKnown adds amounts, of which one that is [rules.Unknown] counts as 0.
func plusKnown(a, b int64) int64 {
	switch {
	case a == rules.Unknown:
		return b
	case b == rules.Unknown:
		return a
	}
	return a + b
}

// minus subtracts a bound that is part of a. Either may be [rules.Unknown].
func minus(a, b int64) int64 {
	if a == rules.Unknown || b == rules.Unknown {
		return rules.Unknown
	}
	return max(0, a-b)
}

// atLeast returns the higher bound. Either may be [rules.Unknown], which is higher than all.
func atLeast(a, b int64) int64 {
	if a == rules.Unknown || b == rules.Unknown {
		return rules.Unknown
	}
	return max(a, b)
}
