package history

// bits are a set of seconds.
type bits []uint64

func newBits(n int64) bits { return make(bits, (n+63)/64) }

func (b bits) has(i int64) bool { return b[i/64]&(1<<(i%64)) != 0 }

func (b bits) set(from, to int64) {
	for i := from; i < to; i++ {
		b[i/64] |= 1 << (i % 64)
	}
}

func (b bits) all(from, to int64) bool {
	for i := from; i < to; i++ {
		if !b.has(i) {
			return false
		}
	}
	return true
}

func (b bits) or(other bits) {
	for i := range b {
		b[i] |= other[i]
	}
}
