package base

// CompareBool orders booleans, which package cmp does not. It returns 0 if a and b are equal, +1
// if only a is true, and -1 if only b is.
func CompareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
