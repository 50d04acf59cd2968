package base

import "testing"

func TestFloorDiv(t *testing.T) {
	for _, c := range []struct{ a, b, want int64 }{{7, 2, 3}, {6, 2, 3}, {0, 2, 0}, {-1, 2, -1}, {-2, 2, -1}, {-3, 2, -2}, {-1, 1, -1}} {
		if got := FloorDiv(c.a, c.b); got != c.want {
			t.Errorf("Div(%d, %d) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
