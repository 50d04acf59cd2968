package testenv

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Seed returns the seed of a test's random choices and logs it. It is RAPID_SEED, as in property
// tests, or a random number.
func Seed(tb testing.TB) uint64 {
	seed, err := strconv.ParseUint(os.Getenv("RAPID_SEED"), 10, 64)
	if err != nil || seed == 0 {
		seed = rand.Uint64()
	}
	tb.Logf("seed %d", seed)
	return seed
}

// Cases returns the number of cases that a test tries: fewer with -short.
func Cases(all, short int) int {
	if testing.Short() {
		return short
	}
	return all
}
