package rules

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseFraction(t *testing.T) {
	for text, want := range map[string]Fraction{
		"20": {1, 5}, "12.5": {1, 8}, "012.50": {1, 8}, "33.3333333": {333333333, 1e9}, ".5": {1, 200}, "5.": {1, 20}, "100": {1, 1}, "0": {}, "0.0": {},
		"999999999.9999999": {9999999999999999, 1e9},
	} {
		if got, err := ParseFraction(text, 100); err != nil || got != want {
			t.Errorf("%s%%: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", ".", "..", "1..2", "1.2.3", "-1", "1e3", " 1", "0x1", "1000000000", strings.Repeat("9", 99)} {
		if got, err := ParseFraction(text, 1); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
	if _, err := ParseFraction("1.00000001", 1); !errors.Is(err, ErrDigits) {
		t.Errorf("eight digits: %v", err)
	}
	rapid.Check(t, func(t *rapid.T) {
		f := NewFraction(rapid.Int64Range(0, 1e16-1).Draw(t, "n"), 1e7)
		if got, err := ParseFraction(f.Decimal(1), 1); err != nil || got != f {
			t.Fatalf("%v is written %s, read back as %v, %v", f, f.Decimal(1), got, err)
		}
	})
}

func TestFractionDecimal(t *testing.T) {
	for want, f := range map[string]Fraction{"0": {}, "50": {1, 2}, "80": {80, 100}, "12.5": {1, 8}, "66.6667": {2, 3}, "99.95": {1999, 2000}, "33.3333333": {333333333, 1e9}} {
		if got := f.Decimal(100); got != want {
			t.Errorf("%v: %s, want %s", f, got, want)
		}
	}
}

func TestPortion(t *testing.T) {
	number := rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, math.MaxInt64))
	rapid.Check(t, func(t *rapid.T) {
		n := number.Draw(t, "n")
		want := big.NewRat(n, 1)
		var factors []Fraction
		for range rapid.IntRange(0, 3).Draw(t, "factors") {
			f := Fraction{number.Draw(t, "num"), max(1, number.Draw(t, "den"))}
			factors = append(factors, f)
			want.Mul(want, big.NewRat(f.Num, f.Den))
		}
		got := ScaleUp(n, factors...)
		most := int64(math.MaxInt64 / 2)
		enough := new(big.Rat).SetInt64(got).Cmp(want) >= 0
		tooMuch := got > 0 && new(big.Rat).SetInt64(got-1).Cmp(want) >= 0
		if got != most && (!enough || tooMuch) || got == most && want.Cmp(new(big.Rat).SetInt64(most-1)) <= 0 {
			t.Fatalf("%v of %d: %d, exactly %v", factors, n, got, want)
		}
	})
	if got := testing.AllocsPerRun(100, func() { ScaleUp(1e12, Fraction{1, 5}, Fraction{60, 600}, Percent(80)) }); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

func TestFractionCmp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Fraction{rapid.Int64Range(0, math.MaxInt64).Draw(t, "num"), rapid.Int64Range(1, math.MaxInt64).Draw(t, "den")}
		n := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, math.MaxInt64)).Draw(t, "n")
		if got, want := f.Cmp(n), big.NewRat(f.Num, f.Den).Cmp(big.NewRat(n, 1)); got != want {
			t.Fatalf("%v and %d: %d, want %d", f, n, got, want)
		}
	})
}
