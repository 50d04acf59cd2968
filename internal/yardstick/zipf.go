package yardstick

import (
	"math"
	"math/rand/v2"
)

// Zipf draws ranks 1 to n with probabilities in proportion to k^-s for rank k, by
// rejection-inversion: W. Hörmann, G. Derflinger, "Rejection-inversion to generate variates from
// monotone discrete distributions", ACM TOMACS 6(3), 1996. A draw takes constant time and needs
// no table. So does [rand.Zipf], but not for s of 1 and below, which real traffic has. A Zipf is
// not safe for concurrent use.
type Zipf struct {
	rand     *rand.Rand
	s        float64
	n        float64
	first    float64 // integral up to 1.5, minus the weight of rank 1
	last     float64 // integral up to n + 0.5
	shortcut float64 // a rank this close to its inverse is accepted without a test
}

// NewZipf returns a generator. s is at least 0, which makes all ranks equally likely, and n at
// least 1.
func NewZipf(r *rand.Rand, s float64, n int) *Zipf {
	z := &Zipf{rand: r, s: s, n: float64(n)}
	z.first = z.integral(1.5) - 1
	z.last = z.integral(z.n + 0.5)
	z.shortcut = 2 - z.inverse(z.integral(2.5)-z.weight(2))
	return z
}

// Draw returns the next rank.
func (z *Zipf) Draw() int {
	for {
		u := z.last + z.rand.Float64()*(z.first-z.last)
		x := z.inverse(u)
		k := min(max(math.Floor(x+0.5), 1), z.n)
		if k-x <= z.shortcut || u >= z.integral(k+0.5)-z.weight(k) {
			return int(k)
		}
	}
}

// weight returns x^-s.
func (z *Zipf) weight(x float64) float64 { return math.Exp(-z.s * math.Log(x)) }

// integral returns the integral of the weight from 1 to x: (x^(1-s) - 1) / (1-s), or log x if s
// is 1.
func (z *Zipf) integral(x float64) float64 {
	log := math.Log(x)
	return expm1Over((1-z.s)*log) * log
}

// inverse returns the inverse of the integral.
func (z *Zipf) inverse(u float64) float64 {
	t := max(u*(1-z.s), -1) // rounding may make it smaller
	return math.Exp(log1pOver(t) * u)
}

// expm1Over returns (eˣ - 1) / x. Near 0 it uses the series.
func expm1Over(x float64) float64 {
	if math.Abs(x) > 1e-8 {
		return math.Expm1(x) / x
	}
	return 1 + x/2*(1+x/3)
}

// log1pOver returns log(1 + x) / x. Near 0 it uses the series.
func log1pOver(x float64) float64 {
	if math.Abs(x) > 1e-8 {
		return math.Log1p(x) / x
	}
	return 1 - x*(0.5-x/3)
}

// NewRand returns the random source for a seed.
func NewRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x686f747061726d)) }
