package wire

// CutCount reads a line of the plainest form, head key:n|c, with a known head, a whole count and
// no tags. Nearly all lines have it. ok is false for any other line, which [ParseLine] has to
// judge. The head is a prefix with the marker, as [AppendKey] makes it from an empty text.
func CutCount(line []byte, head string) (key []byte, n int64, ok bool) {
	end := len(line) - len("|c")
	if len(head) == 0 || end <= len(head) || line[end] != '|' || line[end+1] != 'c' || string(line[:len(head)]) != head {
		return nil, 0, false
	}
	pos := end - 1
	for scale := int64(1); pos > len(head) && end-pos <= maxDigits; pos-- {
		c := line[pos] - '0'
		if c > 9 {
			break
		}
		n += int64(c) * scale
		scale *= 10
	}
	key = line[len(head):pos]
	if line[pos] != ':' || pos == len(head) || pos == end-1 || n > MaxCount || !plainName(key) {
		return nil, 0, false
	}
	return key, n, true
}

// maxDigits is a number of digits that cannot overflow.
const maxDigits = 18

// digits reads up to maxDigits decimal digits.
func digits(s []byte) (int64, bool) {
	if len(s) == 0 || len(s) > maxDigits {
		return 0, false
	}
	var n int64
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}
