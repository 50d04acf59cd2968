package baseline

import (
	"testing"

	"pgregory.net/rapid"
)

// A quantity is never below the count, and above it by less than one part in 1,024.
func TestQuantityIsNeverBelow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1<<61).Draw(t, "n") >> rapid.IntRange(0, 60).Draw(t, "shift")
		got := quantize(n).value()
		if got < n || got-n > n/1024 {
			t.Fatalf("%d is kept as %d", n, got)
		}
		if n < 2048 && got != n {
			t.Fatalf("%d is kept as %d", n, got)
		}
		if more := quantize(n + 1).value(); more < got {
			t.Fatalf("%d is kept as %d, %d as %d", n, got, n+1, more)
		}
	})
}

// All 16-bit quantities have a value, and quantizing the value gives the quantity.
func TestEachQuantityHasAValue(t *testing.T) {
	before := int64(-1)
	for q := range 1 << 16 {
		n := quantity(q).value()
		if n < before || n > maxQuantity {
			t.Fatalf("%d is %d after %d", q, n, before)
		}
		if before = n; n < maxQuantity && quantize(n) != quantity(q) {
			t.Fatalf("%d is %d, which is kept as %d", q, n, quantize(n))
		}
	}
}
