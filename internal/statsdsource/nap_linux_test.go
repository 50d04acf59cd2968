package statsdsource

import (
	"testing"
	"time"
)

func TestNapAfter(t *testing.T) {
	const µs = time.Microsecond
	for _, test := range []struct {
		name              string
		n                 int
		full              bool
		took, spent, want time.Duration
	}{
		{"nothing came", 0, false, 50 * time.Millisecond, 0, 0},
		{"more may be waiting", 64, true, 200 * µs, 10 * µs, 0},
		{"a packet each 2 ms", 1, false, 2000 * µs, 10 * µs, 0},
		{"a packet each ms", 1, false, 1000 * µs, 10 * µs, 990 * µs},
		{"50,000 a second", 50, false, 1000 * µs, 100 * µs, 860 * µs},
		{"200,000 a second", 40, false, 200 * µs, 50 * µs, 190 * µs},
		{"many that came as one", 320, false, 1000 * µs, 10 * µs, 140 * µs},
		{"counting took longer", 40, false, 200 * µs, 250 * µs, 0},
		{"the clock was set back", 3, false, -time.Hour, 0, 0},
		{"the clock was set forward", 3, false, time.Hour, 0, 0},
	} {
		if got := napAfter(test.n, test.full, test.took, test.spent); got != test.want {
			t.Errorf("%s: a nap of %v, want %v", test.name, got, test.want)
		}
	}
}
