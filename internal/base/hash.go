package base

// Mix64 spreads the bits of a number, so that each bit of x affects each bit of the result. It is
// the finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
func Mix64(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
