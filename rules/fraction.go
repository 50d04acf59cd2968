package rules

import (
	"errors"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

// Fraction is an exact part or multiple, Num/Den, in lowest terms: "20%" in a rules file is 1/5,
// and "1.5x" is 3/2. A float64 holds neither 20% nor a third exactly, and a single count can
// decide whether a key reaches its threshold. Fractions made by [NewFraction] and [ParseFraction]
// can be compared with ==. The zero value means none.
type Fraction struct{ Num, Den int64 }

// NewFraction returns num/den in lowest terms. den must be positive and num must not be negative.
func NewFraction(num, den int64) Fraction {
	a, b := num, den
	for b != 0 {
		a, b = b, a%b
	}
	if num == 0 {
		return Fraction{}
	}
	return Fraction{num / a, den / a}
}

// Percent returns n/100.
func Percent(n int64) Fraction { return NewFraction(n, 100) }

// Bounds of the numbers that [ParseFraction] reads. No file needs more digits, and a count times
// all of them still fits in 128 bits.
const (
	maxWholeDigits   = 9
	maxDecimalDigits = 7
)

// ErrDigits is the error of [ParseFraction] for too many digits after the point.
var ErrDigits = errors.New("want at most " + strconv.Itoa(maxDecimalDigits) + " digits after the point")

var errFraction = errors.New("want a number such as 20 or 12.5")

// ParseFraction reads a decimal number, "8" or "12.5", exactly, and divides it by per:
// 100 for a percentage, 1 for a multiple.
func ParseFraction(s string, per int64) (Fraction, error) {
	whole, decimals, _ := strings.Cut(s, ".")
	whole, decimals = strings.TrimLeft(whole, "0"), strings.TrimRight(decimals, "0")
	switch {
	case strings.Trim(s, "0123456789.") != "" || strings.Trim(s, ".") == "" || len(whole) > maxWholeDigits:
		return Fraction{}, errFraction
	case strings.Contains(decimals, "."):
		return Fraction{}, errFraction
	case len(decimals) > maxDecimalDigits:
		return Fraction{}, ErrDigits
	}
	n, err := strconv.ParseInt("0"+whole+decimals, 10, 64)
	if err != nil {
		return Fraction{}, errFraction
	}
	for range decimals {
		per *= 10
	}
	return NewFraction(n, per), nil
}

// Cmp compares f with the whole number n, as [cmp.Compare] does.
func (f Fraction) Cmp(n int64) int {
	if f.Den == 0 {
		f.Den = 1
	}
	hi, lo := bits.Mul64(uint64(n), uint64(f.Den))
	switch num := uint64(f.Num); {
	case hi > 0 || num < lo:
		return -1
	case num > lo:
		return 1
	}
	return 0
}

// Inverse returns 1/f. f must not be zero.
func (f Fraction) Inverse() Fraction { return Fraction{f.Den, f.Num} }

// Decimal returns f × scale as a decimal number; scale is 100 for a percentage. The result is
// exact, in as few digits as that takes. A number without an exact decimal form, such as a third,
// is rounded to six significant digits.
func (f Fraction) Decimal(scale int64) string {
	if f.Num == 0 || f.Den == 0 {
		return "0"
	}
	r := new(big.Rat).Mul(big.NewRat(f.Num, f.Den), big.NewRat(scale, 1))
	digits, exact := r.FloatPrec()
	if exact {
		return r.FloatString(digits)
	}
	v, _ := r.Float64()
	return strconv.FormatFloat(v, 'g', 6, 64)
}

// ScaleUp returns the exact product of n and all factors, rounded up to a whole number. The
// result is at most math.MaxInt64/2, which no count reaches. n and the factors must not be
// negative.
func ScaleUp(n int64, factors ...Fraction) int64 {
	num, den := uint64(1), uint64(1)
	for _, f := range factors {
		h, l := bits.Mul64(num, uint64(f.Num))
		hd, ld := bits.Mul64(den, uint64(f.Den))
		if h|hd != 0 {
			return bigPortion(n, factors)
		}
		num, den = l, ld
	}
	hi, lo := bits.Mul64(uint64(n), num)
	if hi >= den {
		return math.MaxInt64 / 2
	}
	q, remainder := bits.Div64(hi, lo, den)
	if remainder > 0 {
		q++
	}
	return int64(min(q, math.MaxInt64/2))
}

// bigPortion is [ScaleUp] for factors whose product does not fit in 64 bits.
func bigPortion(n int64, factors []Fraction) int64 {
	product := big.NewRat(n, 1)
	for _, f := range factors {
		product.Mul(product, big.NewRat(f.Num, f.Den))
	}
	q, remainder := new(big.Int).QuoRem(product.Num(), product.Denom(), new(big.Int))
	if remainder.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	if limit := big.NewInt(math.MaxInt64 / 2); q.Cmp(limit) > 0 {
		q = limit
	}
	return q.Int64()
}
