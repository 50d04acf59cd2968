package baseline

import "math/bits"

// quantity is a count in 16 bits: exact below 2,048, and above that rounded up by less than
// one part in 1,024. The upper 6 bits are an exponent e, the lower 10 a mantissa m: m for
// e = 0, and (1024 + m) << (e - 1) otherwise.
type quantity uint16

const mantissaBits = 10

// maxQuantity is a count that no key reaches in an hour.
const maxQuantity = 1 << 61

// quantize returns n, rounded up.
func quantize(n int64) quantity {
	n = min(max(0, n), maxQuantity)
	if n < 1<<mantissaBits {
		return quantity(n)
	}
	shift := bits.Len64(uint64(n)) - mantissaBits - 1
	m := (n + 1<<shift - 1) >> shift // 1024 to 2048
	if m == 2<<mantissaBits {
		m, shift = m/2, shift+1
	}
	return quantity(int64(shift+1)<<mantissaBits + m - 1<<mantissaBits)
}

// value returns the count. Encodings beyond the highest count yield the highest count.
func (q quantity) value() int64 {
	e, m := q>>mantissaBits, int64(q&(1<<mantissaBits-1))
	if e == 0 {
		return m
	}
	if e > 62-mantissaBits {
		return maxQuantity
	}
	return min(maxQuantity, (1<<mantissaBits+m)<<(e-1))
}
