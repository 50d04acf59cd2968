package decode

// fractions are the remainders of counts that were not whole: one line that is sampled at 0.3
// represents 3.33. The remainder is added to the next line of its place, so that counts add up
// to the truth within two for each place.
//
// Keys share places, so a key may get the remainder of another. With one sum in a place that
// would not even out: of two keys that alternate with 0.9 and 0.1 the second would get it all.
// With two sums, chosen at random, each key gets a whole one as often as it should.
type fractions struct {
	left [256][2]float64
	dice uint64
}

// carry adds part of a count, less than 1, of the key with this hash. It returns 1 if that
// completes a whole count, and 0 otherwise.
func (f *fractions) carry(hash uint64, part float64) int64 {
	f.dice = f.dice*6364136223846793005 + 1442695040888963407 // Knuth's MMIX
	left := &f.left[hash%uint64(len(f.left))][f.dice>>63]
	if *left += part; *left < 1 {
		return 0
	}
	*left--
	return 1
}
