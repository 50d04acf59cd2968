package base

// ReservedBytes returns the high bit of each of eight bytes that does not stand for itself in a
// key: all but letters, digits and -._~. Each range is found from the carry into a byte's high
// bit, which no sum of two seven-bit numbers takes further.
func ReservedBytes(w uint64) uint64 {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	low := w &^ high
	letter := low | 0x20*ones
	plain := (letter + (0x80-'a')*ones) &^ (letter + (0x7f-'z')*ones)
	plain |= (low + (0x80-'0')*ones) &^ (low + (0x7f-'9')*ones)
	plain |= (low + (0x80-'-')*ones) &^ (low + (0x7f-'.')*ones)
	plain |= (low + (0x80-'_')*ones) &^ (low + (0x7f-'_')*ones)
	plain |= (low + (0x80-'~')*ones) &^ (low + (0x7f-'~')*ones)
	return high &^ (plain &^ w)
}
