package history

import "github.com/hotparam/hotparam/internal/published"

// plusKnown adds amounts, of which one that is [published.Unknown] counts as 0.
func plusKnown(a, b int64) int64 {
	switch {
	case a == published.Unknown:
		return b
	case b == published.Unknown:
		return a
	}
	return a + b
}

// minus subtracts a bound that is part of a. Either may be [published.Unknown].
func minus(a, b int64) int64 {
	if a == published.Unknown || b == published.Unknown {
		return published.Unknown
	}
	return max(0, a-b)
}

// atLeast returns the higher bound. Either may be [published.Unknown], which is higher than all.
func atLeast(a, b int64) int64 {
	if a == published.Unknown || b == published.Unknown {
		return published.Unknown
	}
	return max(a, b)
}
