// Package cmpbool orders booleans, which package cmp does not.
package cmpbool

// Compare returns 0 if a and b are equal, +1 if only a is true, and -1 if only b is.
func Compare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
