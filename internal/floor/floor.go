// Package floor divides as calendars need it: instants before 1970 are negative.
package floor

// Div returns a/b, rounded down. b must be positive.
func Div(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
