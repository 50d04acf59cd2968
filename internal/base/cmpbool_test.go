package base

import "testing"

func TestCompareBool(t *testing.T) {
	for _, c := range []struct {
		a, b bool
		want int
	}{{false, false, 0}, {true, true, 0}, {true, false, 1}, {false, true, -1}} {
		if got := CompareBool(c.a, c.b); got != c.want {
			t.Errorf("CompareBool(%v, %v) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
