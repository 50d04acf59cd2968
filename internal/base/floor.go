package base

// FloorDiv returns a/b, rounded down. Calendars need it, since instants before 1970 are negative.
// b must be positive.
func FloorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
