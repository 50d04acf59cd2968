package base

// ReservedBytes sets the high bit of each of the eight bytes of w that is escaped in a key: all
// but letters, digits and -._~. Each range is found by the carry into a byte's high bit. Sums of
// two seven-bit numbers never carry further.
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
