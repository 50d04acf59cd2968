package gateways

import (
	"math"
	"testing"
	"time"
)

func TestBusyShare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		before, after string
		want          float64
	}{
		{"cpu 10 0 10 100 0 0 0 0 0 0", "cpu 30 0 20 170 0 0 0 0 0 0", 0.3},
		{"cpu 10 0 10 100 50 0 0 0 0 0", "cpu 10 0 10 150 100 0 0 0 0 0", 0},
		{"cpu 0 0 0 0 0 0 0 0 0 0", "cpu 1 1 1 0 0 1 1 5 0 0", 1},
		{"cpu 1 2 3 4", "cpu 1 2 3 4", 0},
		{"", "", 0},
	} {
		if got := busyShare(c.before, c.after); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("busyShare(%q, %q) = %v, want %v", c.before, c.after, got, c.want)
		}
	}
	if share, err := busy(t.Context(), 10*time.Millisecond); err != nil || share < 0 || share > 1 {
		t.Errorf("this machine: %v, %v", share, err)
	}
}
